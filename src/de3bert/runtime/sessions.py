"""ONNX Runtime sessions that do not fight over the cores.

A session with threads of its own keeps them spinning for work. A bundle has a session per exit, and
on cores that are not idle twelve such pools fight one another. So all sessions of a process share
one pool, which ONNX Runtime lets a process size once. Its threads spin too, which is fastest on
dedicated cores; on cores shared with others, threads that sleep (`spin=False`) are better.

Measured with a 12 x 384 bundle, 16 tokens, full depth, two threads on two cores, median ms:

                              idle cores    both cores busy with other work
    shared pool, spinning        7.0             32
    own pools, sleeping          8.9             14
    own pools, spinning            -             85
    one thread                    12             12
"""

from __future__ import annotations

from pathlib import Path

import onnxruntime

from de3bert.errors import De3Error, UsageError
from de3bert.runtime.threads import check_threads, cores

__all__ = ["check_sleeping", "open_session", "share_threads"]

_shared: int | None = None  # threads of the pool this process has


def share_threads(threads: int | None) -> int:
    """Makes the process's pool, or checks that the one it has will do; returns its size.

    Args:
        threads: None takes the pool there is, or one thread per core this process may use.
    """
    global _shared
    check_threads(threads)
    if _shared is not None:
        if threads not in (None, _shared):
            raise UsageError(
                f"This process already runs bundles on {_shared} threads, and ONNX Runtime lets a "
                f"process choose once. Load with threads={_shared}, or start another process."
            )
        return _shared
    wanted = threads or cores()
    try:
        onnxruntime.set_global_thread_pool_sizes(wanted, 1)
    except Exception as error:  # ONNX Runtime's errors have no public base
        if "already been created" not in str(error):
            raise
        # Somebody else in this process has sized the pool; it is there, and that is what counts.
    _shared = wanted
    return wanted


def check_sleeping() -> None:
    """UsageError where no session can have threads of its own."""
    if _shared is not None:
        raise UsageError(
            "This process already runs bundles on a shared pool of threads, and ONNX Runtime then "
            "lets no session have its own. Load with spin=False before any other bundle, or start "
            "another process."
        )


def open_session(path: Path, sleeping: int | None = None) -> onnxruntime.InferenceSession:
    """A session on the shared pool, or with so many threads of its own that sleep."""
    if sleeping is not None:
        check_sleeping()
    options = onnxruntime.SessionOptions()
    if sleeping is None:
        options.use_per_session_threads = False
    else:
        options.intra_op_num_threads = sleeping
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # what fails is raised, and told once, without its colours
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise De3Error(f"The graph {path} could not be loaded: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
