"""How many threads may be asked for; known before any library that would make them is loaded."""

from __future__ import annotations

import os

from de3bert.limits import check_limit
from de3bert.runtime.arguments import checked_count

__all__ = ["check_threads", "cores"]


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: object) -> int | None:
    """The number asked for, None for one per core; UsageError for more than a machine can bear."""
    if threads is None:
        return None
    number = checked_count("threads", threads)
    if number > (os.cpu_count() or 1):
        check_limit("threads", number, "threads")
    return number
