"""Is it made already? Asked of traces and bundles, before anything is made a second time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from de3bert.errors import De3Error
from de3bert.exits.trace import Trace
from de3bert.runtime.manifest import is_bundle

__all__ = ["Export", "bundle_in", "trace_is_of"]

Export = Callable[[Path, Path], object]  # a model folder, the folder of its bundle


def trace_is_of(path: Path, sha256: str, rows: int) -> bool:
    """Whether a valid trace of this many rows of the file with this hash exists.

    A file that has not changed is read, and its checksum made, once in a process.
    """
    try:
        found = path.stat()
    except OSError:
        return False
    return _content(path, found.st_mtime_ns, found.st_size) == (sha256, rows)


@lru_cache(maxsize=4096)
def _content(path: Path, changed: int, size: int) -> tuple[str, int] | None:
    """Hash and number of rows that a trace is of; None where it is damaged or does not say."""
    try:
        trace = Trace.load(path)
        return trace.info["data"]["sha256"], trace.rows
    except (De3Error, KeyError, TypeError):
        return None


def bundle_in(folder: Path, model: Path, export: Export) -> Path:
    """The bundle of a model in a folder, exported unless it is there."""
    if not is_bundle(folder):
        export(model, folder)
    return folder
