"""Mutations as small data: what is done to a document, to bytes or to a file of a folder."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from hypothesis import strategies as st
from tests.fuzz.values import ADDITIONS, CHUNKS, OUTSIDE, VALUES, Raw

__all__ = ["Bite", "Edit", "Stand", "as_json", "as_toml", "bites", "bitten", "edited", "edits",
           "filled", "place_stand", "stands"]  # fmt: skip

MARK = "raw/"  # a string that begins so stands for the Raw value of that name
HUGE = 300 << 20


@dataclass(frozen=True)
class Edit:
    """One change of a document: which of its places, what is done there, and the value."""

    at: int
    how: str
    what: str


@dataclass(frozen=True)
class Bite:
    """One change of bytes: where, in thousandths of the length, what is done, and with what."""

    at: int
    how: str
    what: str


@dataclass(frozen=True)
class Stand:
    """Something else stands in the place of a file."""

    how: str


EDITS = ("replace", "replace", "replace", "delete", "add", "double", "rename", "wrap", "swap")
BITES = ("insert", "insert", "overwrite", "overwrite", "cut", "drop", "repeat", "flip", "begin")
STANDS = ("nothing", "empty", "folder", "link out", "link to itself", "endless", "pipe", "huge",
          "pickle", "another")  # fmt: skip

edits = st.lists(
    st.builds(
        Edit,
        st.integers(0, 299),
        st.sampled_from(EDITS),
        st.sampled_from([*VALUES, *(f"key {name}" for name in ADDITIONS)]),
    ),
    min_size=1,
    max_size=3,
)
bites = st.lists(
    st.builds(Bite, st.integers(0, 1000), st.sampled_from(BITES), st.sampled_from(list(CHUNKS))),
    min_size=1,
    max_size=3,
)
stands = st.builds(Stand, st.sampled_from(STANDS))


def value_of(what: str) -> tuple[str, Any]:
    """A key and the value for it."""
    if what.startswith("key "):
        name = what.removeprefix("key ")
        return name, copy.deepcopy(ADDITIONS[name])
    value = VALUES[what]
    return what, MARK + what if isinstance(value, Raw) else copy.deepcopy(value)


def edited(document: Any, changes: list[Edit]) -> Any:
    """The document after all changes; it may have become something else altogether."""
    box = [copy.deepcopy(document)]
    for change in changes:
        places = list(_places(box))
        if not places:
            break
        container, key = places[change.at % len(places)]
        _apply(container, key, change, places)
    return box[0] if box else None


def _places(container: Any) -> Any:
    """Every (container, key) below."""
    keys = list(container) if isinstance(container, dict) else range(len(container))
    for key in keys:
        yield container, key
        if isinstance(container[key], dict | list):
            yield from _places(container[key])


def _apply(container: Any, key: Any, change: Edit, places: list[tuple[Any, Any]]) -> None:
    name, value = value_of(change.what)
    old = container[key]
    if change.how == "delete" and len(places) > 1:
        del container[key]
    elif change.how == "add" and isinstance(old, dict):
        old[name] = value
    elif change.how == "double" and isinstance(old, list) and old:
        old.append(copy.deepcopy(old[-1]))
    elif change.how == "rename" and isinstance(container, dict):
        container[name] = container.pop(key)
    elif change.how == "wrap":
        container[key] = [old]
    elif change.how == "swap":
        other, place = places[(change.at * 7 + 1) % len(places)]
        container[key] = copy.deepcopy(other[place]) if other is not container else value
    else:
        container[key] = value


def as_json(document: Any) -> bytes:
    return _written_raw(json.dumps(document))


def as_toml(document: Any) -> bytes:
    """TOML as far as the document can be; a wild one gives a file that is none."""
    try:
        text = tomli_w.dumps(document)
    except (TypeError, ValueError, AttributeError, RecursionError):
        text = json.dumps(document)
    return _written_raw(text)


def _written_raw(text: str) -> bytes:
    for name, value in VALUES.items():
        if isinstance(value, Raw):
            text = text.replace(f'"{MARK}{name}"', value)
    return text.encode("utf-8", "surrogatepass")


def bitten(data: bytes, changes: list[Bite]) -> bytes:
    for change in changes:
        at, chunk = len(data) * change.at // 1000, CHUNKS[change.what]
        before, after = data[:at], data[at:]
        if change.how == "insert":
            data = before + chunk + after
        elif change.how == "overwrite":
            data = before + chunk + after[len(chunk) :]
        elif change.how == "cut":
            data = before
        elif change.how == "drop":
            data = before + after[max(1, len(chunk)) :]
        elif change.how == "repeat":
            data = before + after[:64] * 3 + after
        elif change.how == "begin":
            data = chunk + data
        elif after:
            data = before + bytes([after[0] ^ (1 << change.at % 8)]) + after[1:]
    return data


def place_stand(path: Path, stand: Stand, link: Path, another: Path) -> None:
    """Puts something else where the file was.

    Args:
        link: what a link leads to.
        another: what lies there in its stead, when it is another file.
    """
    content = another.read_bytes() if stand.how == "another" else b""
    path.unlink(missing_ok=True)
    if stand.how == "empty":
        path.write_bytes(b"")
    elif stand.how == "folder":
        path.mkdir()
    elif stand.how == "link out":
        path.symlink_to(link)
    elif stand.how == "link to itself":
        path.symlink_to(path)
    elif stand.how == "endless":
        path.symlink_to("/dev/zero")
    elif stand.how == "pipe":
        os.mkfifo(path)
    elif stand.how == "huge":
        with path.open("wb") as file:
            file.truncate(HUGE)  # takes no room on the disk
    elif stand.how == "pickle":
        path.write_bytes(CHUNKS["pickle"])
    elif stand.how == "another":
        path.write_bytes(content)


def filled(data: bytes, outside: Path) -> bytes:
    """With the folder of the canaries named where a value speaks of it."""
    return data.replace(OUTSIDE.encode(), str(outside).encode())
