"""ONNX Runtime sessions that share one pool of threads.

A session with threads of its own keeps them spinning for work. A bundle has a session per exit, and
on two cores twelve such pools fight one another (13 times slower was measured). So all sessions of
a process share one pool, which ONNX Runtime lets a process size once.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime

from de3bert.errors import De3Error, UsageError

__all__ = ["open_session", "share_threads"]

_shared: int | None = None  # threads of the pool this process has


def share_threads(threads: int | None) -> int:
    """Makes the process's pool, or checks that the one it has will do; returns its size.

    Args:
        threads: None takes the pool there is, or one thread per core this process may use.
    """
    global _shared
    if threads is not None and threads < 1:
        raise UsageError(f"threads must be at least 1, got {threads}.")
    if _shared is not None:
        if threads not in (None, _shared):
            raise UsageError(
                f"This process already runs bundles on {_shared} threads, and ONNX Runtime lets a "
                f"process choose once. Load with threads={_shared}, or start another process."
            )
        return _shared
    wanted = threads or len(os.sched_getaffinity(0))
    try:
        onnxruntime.set_global_thread_pool_sizes(wanted, 1)
    except Exception as error:  # ONNX Runtime's errors have no public base
        if "already been created" not in str(error):
            raise
        # Somebody else in this process has sized the pool; it is there, and that is what counts.
    _shared = wanted
    return wanted


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """A session on the shared pool."""
    options = onnxruntime.SessionOptions()
    options.use_per_session_threads = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise De3Error(f"The graph {path} could not be loaded: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
