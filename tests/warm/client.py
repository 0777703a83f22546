"""Looks like a Python process from outside, and lets the server's fork do the work."""

import json
import os
import signal
import socket
import struct
import sys

path, *arguments = sys.argv[1:]
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.connect(path)
asked = json.dumps(
    {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
).encode()
socket.send_fds(server, [struct.pack("!I", len(asked))], [0, 1, 2])
server.sendall(asked)
(pid,) = struct.unpack("!i", server.recv(4, socket.MSG_WAITALL))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda received, frame: os.kill(pid, received))
devnull = os.open(os.devnull, os.O_RDWR)
for mine in (0, 1, 2):  # only the process itself holds the files: a reader sees them closed
    os.dup2(devnull, mine)
(status,) = struct.unpack("!i", server.recv(4, socket.MSG_WAITALL))
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
