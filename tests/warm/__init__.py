"""Python processes that need no seconds to import torch and transformers.

`python()` stands for `sys.executable` in a command: same arguments, files, folder, environment,
signals and exit code. A server that has imported the libraries, and nothing of this project,
forks the process. Tests of the order in which transformers and this project are imported take
`python("torch")`, where transformers is not imported yet; those of what is imported when, and of
variables that a library reads while it is imported, take `sys.executable`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal

__all__ = ["python"]

HERE = Path(__file__).parent
SERVERS: list[subprocess.Popen[str]] = []  # kept, or their inputs would be closed


@cache
def python(imported: Literal["all", "torch"] = "all") -> tuple[str, ...]:
    """What to write for `sys.executable`; the first call of a worker starts its server.

    Args:
        imported: of the libraries; "torch" leaves out transformers and what imports it.
    """
    if not hasattr(os, "pidfd_open"):  # not Linux
        return (sys.executable,)
    path = Path(tempfile.mkdtemp(prefix="de3-warm-")) / "socket"
    # It ends when its standard input does: with this process, however that ends.
    server = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(path), imported],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    if server.stdout.readline() != "ready\n":  # other versions may start threads when imported
        return (sys.executable,)
    SERVERS.append(server)
    return (sys.executable, "-S", "-E", "-I", str(HERE / "client.py"), str(path))
