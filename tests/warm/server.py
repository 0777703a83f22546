"""Imports what is slow to import, then forks a Python process for every client.

    python server.py SOCKET all|torch

A fork is made only from a process with one thread. A minder stands between the server and each
process: it tells the client how the process ended, and ends it when the client is gone.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import traceback
import types

# Not onnxruntime and what reads Parquet: they start threads when imported, and no fork has them.
TORCH = (
    "torch", "torch._dynamo", "torch.distributed.tensor", "scipy.optimize", "scipy.linalg",
    "huggingface_hub", "tokenizers", "safetensors.torch", "pydantic", "array_api_compat",
    "filelock",
)  # fmt: skip
LIBRARIES = {
    "torch": TORCH,
    "all": (
        *TORCH, "transformers.modeling_utils", "transformers.training_args",
        "transformers.trainer_callback", "transformers.models.auto.modeling_auto",
        "transformers.models.bert.modeling_bert", "accelerate", "typer", "rich.table",
    ),
}  # fmt: skip


# What `de3` sets before it imports them.
QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


def main() -> None:
    sys.path.pop(0)  # this folder
    os.environ.update(QUIET)
    for name in LIBRARIES[sys.argv[2]]:
        importlib.import_module(name)
    gc.freeze()  # a collection in a fork must not write to, and so copy, what all of them share
    if len(os.listdir("/proc/self/task")) > 1:
        print("a library has started a thread", flush=True)
        return
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:  # whoever started this server is gone
            return
        client, _ = listener.accept()
        while os.waitpid(-1, os.WNOHANG)[0] if _has_children() else False:
            pass  # minders that are done
        if os.fork() == 0:
            listener.close()
            asked = _mind(client)
            if asked is not None:
                _end_after(asked)
            os._exit(0)
        client.close()


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _mind(client: socket.socket) -> dict | None:
    """In the process itself what was asked for; in its minder None, when it has ended."""
    head, files, _, _ = socket.recv_fds(client, 4, 3)
    (size,) = struct.unpack("!I", head)
    asked = json.loads(client.recv(size, socket.MSG_WAITALL))
    pid = os.fork()
    if pid == 0:
        client.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        return asked
    for file in (*files, 0, 1, 2):
        os.close(file)
    client.sendall(struct.pack("!i", pid))
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, client], [], [])
    if ended not in ready:  # the client was killed
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        client.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    return None


def _end_after(asked: dict) -> None:
    """Runs it, and ends as Python ends, but for taking all those modules apart: that is slow."""
    code = 0
    try:
        _become(asked)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = -signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as at the end
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _become(asked: dict) -> None:
    """What `python ARGUMENTS` does: `-c CODE`, `-m MODULE` or a file, with arguments behind it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    eager = bool(asked["environment"].get("PYTHONUNBUFFERED"))
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stdout.reconfigure(write_through=eager)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    more = [path for path in asked["environment"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [path for path in more if path not in sys.path]
    how, *rest = asked["arguments"]
    if how == "-c":
        code, *rest = rest
        sys.argv, sys.path[:0] = ["-c", *rest], [""]
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(code, "<string>", "exec"), module.__dict__)
    elif how == "-m":
        name, *rest = rest
        sys.argv, sys.path[:0] = [name, *rest], [os.getcwd()]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[:0] = [how, *rest], [os.path.dirname(os.path.abspath(how))]
        runpy.run_path(how, run_name="__main__")


main()
