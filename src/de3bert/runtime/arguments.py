"""What Python callers give besides texts, checked before any work begins."""

from __future__ import annotations

import operator
import os
import re
from pathlib import Path

from de3bert.errors import UsageError
from de3bert.printable import kind_of, printable, shown

__all__ = [
    "checked_cache",
    "checked_count",
    "checked_device",
    "checked_dtype",
    "checked_name",
    "checked_revision",
    "checked_source",
    "checked_token",
]

# What a model on the hub can be called; everything else can only be meant as a folder.
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)

REVISION = re.compile(r"(?!.*\.\.)[^\s/\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]{0,250}")
DTYPES = ("float32", "bfloat16", "float16")


def checked_count(name: str, value: object) -> int:
    """A whole number from 1 up; numpy's kinds count, truth values do not."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        raise UsageError(
            f"{name} must be a whole number from 1 up, got {shown(value)} ({kind_of(value)})."
        ) from None
    if number < 1:
        raise UsageError(f"{name} must be at least 1, got {number}.")
    return number


def checked_name(name: str, value: object) -> str | None:
    """A name of something, or None for the default."""
    if value is None or isinstance(value, str):
        return value
    raise UsageError(f"{name} is given by its name, a str; got {shown(value)} ({kind_of(value)}).")


def checked_device(device: object) -> str | None:
    """The name of a device; whether it is there only torch knows."""
    kind = getattr(device, "type", None)  # a torch.device
    return checked_name("device", str(device) if isinstance(kind, str) else device)


def checked_dtype(dtype: object) -> str | None:
    """The name of a precision, without torch; None, as `auto`, for that of the stored weights."""
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if dtype is None or name == "auto":
        return None
    if name in DTYPES and (isinstance(dtype, str) or type(dtype).__name__ == "dtype"):
        return name
    raise UsageError(
        f"dtype is {', '.join(DTYPES)}, as text or of torch, or auto; got {shown(dtype)} "
        f"({kind_of(dtype)})."
    )


def checked_revision(revision: object) -> str | None:
    """What can be the name of a branch, a tag or a commit."""
    name = checked_name("revision", revision)
    if name is not None and not REVISION.fullmatch(name):
        raise UsageError(
            f"revision is a branch, a tag or a commit of a model on the hub; got {shown(name)}."
        )
    return name


def checked_token(token: object) -> str | bool | None:
    """A token of the hub; whatever came instead is not shown, for it may well be one."""
    if token is None or isinstance(token, bool) or (isinstance(token, str) and token.strip()):
        return token
    raise UsageError(
        "token is a token of the hub as text, True for the one of `hf auth login`, or False for "
        f"none; got {kind_of(token) if token else 'an empty one'}."
    )


def checked_cache(cache_dir: object) -> str | None:
    """The whole path of a folder that is there, or that can be made."""
    if cache_dir is None:
        return None
    if not isinstance(cache_dir, str | os.PathLike) or not isinstance(os.fspath(cache_dir), str):
        raise UsageError(
            f"cache_dir is a folder, a str or a Path; got {shown(cache_dir)} "
            f"({kind_of(cache_dir)})."
        )
    named = os.fspath(cache_dir)
    if not named.strip() or "\0" in named or Path(named).is_file():
        raise UsageError(f"cache_dir is a folder; got {shown(named)}, which is none.")
    return str(Path(named).expanduser().absolute())


def checked_source(source: object) -> str:
    """A folder that is there, or what can be the name of a model on the hub."""
    if not isinstance(source, str | os.PathLike) or not isinstance(os.fspath(source), str):
        raise UsageError(
            "A model is named by its folder or its hub id, a str or a Path; got "
            f"{shown(source)} ({kind_of(source)})."
        )
    named = os.fspath(source)
    if not named.strip():
        raise UsageError("A model is named by its folder or its hub id; got an empty name.")
    try:
        there = Path(named).exists()
    except (ValueError, OSError) as error:  # a NUL character, a name that is too long
        raise UsageError(f"{shown(named)} cannot be the name of a folder: {error}.") from error
    if not there and not HUB_ID.fullmatch(named):
        raise UsageError(f"There is no folder {printable(named)}.{_nearby(Path(named))}")
    return named


def _nearby(path: Path) -> str:
    """How far the path does lead."""
    for parent in path.parents:
        if parent.is_dir():
            return f" The nearest existing folder: {printable(str(parent.absolute()))}."
    return ""
