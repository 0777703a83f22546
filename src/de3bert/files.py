"""Writing results so that a reader sees either the old file or the new one, never half of it."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.limits import check_limit
from de3bert.locks import OLD, PARTIAL, alive, close, sweep

__all__ = [
    "check_file_place",
    "check_folder_place",
    "disk_is_full",
    "json_of",
    "read_json",
    "read_toml",
    "replace_file",
    "replace_folder",
    "write_json",
    "write_text",
]

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Writers in other languages report the system's error as text only.
NO_SPACE_TEXT = re.compile(
    rf"os error ({'|'.join(map(str, NO_SPACE))})\b|No space left|inline_container.*unexpected pos"
)
REFUSALS = {
    errno.ENOENT: "no folder can be made there; choose another location",
    errno.EACCES: "no permission to write there; choose another location",
    errno.EPERM: "no permission to write there; choose another location",
    errno.EROFS: "that disk is read-only; choose another location",
    errno.ENOTDIR: "there is a file where a folder is needed; choose another location",
    errno.EEXIST: "there is a file where a folder is needed; choose another location",
    errno.EISDIR: "there is a folder where a file is needed; choose another name",
    errno.ENAMETOOLONG: "the name is too long; choose another name",
}


@contextmanager
def replace_file(target: str | Path) -> Iterator[Path]:
    """Yields a temporary path next to `target`; moved into place on success, removed otherwise.

    Example:
        >>> with replace_file("curve.png") as path:
        ...     figure.savefig(path)
    """
    target = Path(target)
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        # The suffix is kept: writers such as matplotlib choose the format by it.
        ends = f".{target.stem}.", PARTIAL + target.suffix
        sweep(target, *ends)
        handle, name = tempfile.mkstemp(prefix=ends[0], suffix=ends[1], dir=target.parent)
    mark = alive(Path(name))
    os.close(handle)
    temporary = Path(name)
    try:
        with _space_explained(target):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        with _explained(target):
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
        close(mark)


@contextmanager
def replace_folder(target: str | Path) -> Iterator[Path]:
    """Yields a temporary folder next to `target`; on success it replaces `target` as a whole."""
    target = Path(target).absolute()
    check_folder_place(target)
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        ends = f".{target.name}.", PARTIAL
        sweep(target, *ends)
        temporary = Path(tempfile.mkdtemp(prefix=ends[0], suffix=ends[1], dir=target.parent))
    mark = alive(temporary)
    old = temporary.with_name(temporary.name + OLD)
    try:
        with _space_explained(target):
            yield temporary
        with _explained(target):
            temporary.chmod(0o777 & ~_umask())
            if target.exists():
                target.replace(old)
            temporary.replace(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.replace(target)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        close(mark)


def check_folder_place(target: str | Path) -> None:
    """De3Error when no folder can be written there; for before the work, whose end writes it."""
    target = Path(target).absolute()
    _check_parent(target)
    if target.is_symlink():
        raise De3Error(
            f"Could not write {target}: it is a symbolic link, and a folder is replaced as a "
            f"whole. Give the folder itself: {target.resolve()}. Nothing was changed."
        )
    if target.exists() and not target.is_dir():
        raise De3Error(f"Could not write {target}: {REFUSALS[errno.ENOTDIR]}. Nothing was changed.")


def check_file_place(target: str | Path) -> None:
    """De3Error when no file can be written there; for before the work, whose end writes it."""
    target = Path(target).absolute()
    _check_parent(target)
    if target.is_dir():
        raise De3Error(f"Could not write {target}: {REFUSALS[errno.EISDIR]}. Nothing was changed.")


def _check_parent(target: Path) -> None:
    """Something can be made in the nearest folder that is there."""
    with _explained(target):
        there = target.parent
        while not there.exists():  # also fails on a name that is too long
            there = there.parent
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file", str(there))
        # The system is asked, not the permission bits: they say nothing of read-only disks, and
        # nothing to root. The name is the longest that will be needed.
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=PARTIAL + OLD, dir=there)
        os.close(handle)
        os.unlink(name)


def write_text(target: str | Path, text: str) -> None:
    with replace_file(target) as path:
        path.write_text(_encodable(text), encoding="utf-8")


def write_json(target: str | Path, document: Any) -> None:
    write_text(target, json_of(document, target))


def json_of(document: Any, target: str | Path) -> str:
    """What `write_json` writes."""
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        return _encodable(text) + "\n"
    except ValueError as error:  # a config of others may have 1e999 in it
        raise De3Error(
            f"Could not write {target}: it would contain a number that JSON cannot represent (NaN "
            "or infinity). Nothing was changed."
        ) from error


def _encodable(text: str) -> str:
    """Half a surrogate, which no file can hold, written out as JSON has it and reads it back."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def read_json(path: Path, advice: str = "") -> dict[str, Any]:
    """A JSON object from a file that anybody may have written; De3Error when it is none.

    Args:
        advice: what to do about a file that is damaged.
    """
    try:
        document = json.loads(_bounded_text(path, str(path)))
    except OSError as error:
        raise De3Error(f"{path} cannot be read: {error.strerror}. {advice}".rstrip()) from error
    except (ValueError, RecursionError) as error:  # RecursionError: nested thousands deep
        raise De3Error(f"{path} is damaged: {error}. {advice}".rstrip()) from error
    if not isinstance(document, dict):
        found = type(document).__name__
        raise De3Error(f"{path} is damaged: expected a JSON object, got a {found}. {advice}"
                       .rstrip())  # fmt: skip
    return document


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The settings of a TOML file; UsageError when it cannot be read or is none.

    Args:
        what: what the file is, as the start of the message.
    """
    try:
        return tomllib.loads(_bounded_text(path, f"{what} {path}"))
    except OSError as error:
        raise UsageError(f"{what} {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, nested thousands deep
        raise UsageError(f"{what} {path} is not valid TOML: {error}") from error


def _bounded_text(path: Path, what: str) -> str:
    """The text of a document; a pipe or a device, which may never end, is an OSError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    check_limit("document", found.st_size, what)
    return path.read_text(encoding="utf-8")


def disk_is_full(error: BaseException) -> bool:
    """Whether a writer failed for lack of space, whatever kind of error it raised."""
    if isinstance(error, OSError):
        return error.errno in NO_SPACE
    return NO_SPACE_TEXT.search(str(error)) is not None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _full(target: Path) -> De3Error:
    return De3Error(
        f"Could not write {target}: the disk is full (or a size limit was reached); "
        "free some space and run again. Nothing was changed."
    )


@contextmanager
def _space_explained(target: Path) -> Iterator[None]:
    """While the caller writes: only a full disk is about the target, the rest is the caller's."""
    try:
        yield
    except Exception as error:
        if disk_is_full(error):
            raise _full(target) from error
        raise


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Turns the operating system's refusals into messages that name the file and the way out."""
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise _full(target) from error
        reason = REFUSALS.get(error.errno or 0)
        if reason is None:
            raise
        raise De3Error(f"Could not write {target}: {reason}. Nothing was changed.") from error
    except ValueError as error:  # a zero byte
        raise De3Error(f"Could not write {str(target)!r}: {error}. Choose another name.") from error
