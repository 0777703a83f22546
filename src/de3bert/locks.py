"""Who may write: one process at a time edits a folder; what a dead one left is known as such."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from de3bert.errors import De3Error

try:
    import fcntl
except ImportError:  # Windows: there only age tells what was left behind
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "LOCK",
    "OLD",
    "PARTIAL",
    "alive",
    "close",
    "edited_alone",
    "sweep",
    "taken_alone",
]

LOCK = ".de3bert.lock"
PARTIAL = ".partial"  # in the name of everything that is still being written
OLD = ".old"
PATIENCE = 120.0  # seconds to wait for an edit, which takes milliseconds
MOMENT = 2.0  # seconds: far longer than it takes from making something to marking it as alive
DAY = 86_400.0


@contextmanager
def edited_alone(folder: Path) -> Iterator[None]:
    """No other process edits files of the folder meanwhile; read and write inside."""
    lock = FileLock(folder / LOCK, timeout=PATIENCE)
    try:
        with lock:
            yield
    except Timeout as error:
        raise De3Error(
            f"Another process has been editing {folder} for {PATIENCE:.0f} seconds; nothing was "
            "changed. Wait for it to finish, then run again."
        ) from error


@contextmanager
def taken_alone(folder: Path, busy: str) -> Iterator[None]:
    """The folder is ours until the end of a long job; De3Error(busy) when it is another's."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise De3Error(busy) from error
    try:
        yield
    finally:
        lock.release()


def alive(path: Path) -> int | None:
    """Marks a temporary file or folder as being written; close the handle when it is done."""
    return _flock(path)


def sweep(target: Path, prefix: str, suffix: str) -> None:
    """Removes what processes that were killed have left of writing `target`.

    Temporary names are what `tempfile` makes between `prefix` and `suffix`.

    One that was killed between putting the old folder aside and moving the new one into its place
    has left the old one under another name: it is put back.
    """
    ours = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(suffix)}({re.escape(OLD)})?")
    for left in sorted(target.parent.iterdir()):
        if not ours.fullmatch(left.name):
            continue
        if left.name.endswith(OLD):
            if not left.with_name(left.name.removesuffix(OLD)).exists():
                _put_back(left, target)
        elif _is_abandoned(left):
            _remove(left)
            aside = left.with_name(left.name + OLD)
            if aside.exists():
                _put_back(aside, target)


def _put_back(aside: Path, target: Path) -> None:
    if target.exists():
        _remove(aside)
    else:
        aside.replace(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    """Whether its writer is dead: nobody holds its lock, and it was not made just now."""
    try:
        age = time.time() - path.stat().st_mtime
    except OSError:  # gone meanwhile
        return False
    if age < (DAY if fcntl is None else MOMENT):
        return False
    handle = _flock(path)
    close(handle)
    return handle is not None


def _flock(path: Path) -> int | None:
    """A handle that holds the lock of a file or folder; None when it cannot be had at once."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def close(handle: int | None) -> None:
    """Lets go of what `alive` gave."""
    if handle is not None:
        with contextlib.suppress(OSError):
            os.close(handle)
