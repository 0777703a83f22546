"""Which other files an ONNX graph reads its weights from, found without any ONNX library.

A graph may keep weights in separate files and names them itself: `../../etc/passwd` is a name like
any other. So the names are read before ONNX Runtime follows them. Only as much of the protobuf
format is understood as leads to tensors; everything else is stepped over.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from de3bert.errors import De3Error

__all__ = ["external_files"]

# Message -> number of a field -> the message inside it, on every way that leads to a tensor.
LEADS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
KEY, VALUE = 1, 2
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


def external_files(path: Path) -> set[str]:
    """The names of the files that tensors of a graph lie in, as the graph spells them.

    Raises:
        De3Error: the file is no ONNX graph.
    """
    if not path.stat().st_size:
        raise De3Error(f"The graph {path} could not be loaded: it is empty.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _names(data)
        except (IndexError, ValueError) as error:
            raise De3Error(f"The graph {path} could not be loaded: {error}.") from error


def _names(data: mmap.mmap) -> set[str]:
    found: set[str] = set()
    todo = [("model", 0, len(data))]
    while todo:
        message, start, end = todo.pop()
        if message == "entry":
            found |= _location(data, start, end)
            continue
        leads = LEADS[message]
        for number, kind, first, last in _fields(data, start, end):
            if kind == BYTES and number in leads:
                todo.append((leads[number], first, last))
    return found


def _location(data: mmap.mmap, start: int, end: int) -> set[str]:
    """The value of an entry with the key `location`."""
    parts = {number: data[first:last] for number, _, first, last in _fields(data, start, end)}
    if parts.get(KEY) != b"location":
        return set()
    return {parts.get(VALUE, b"").decode("utf-8", "replace")}


def _fields(data: mmap.mmap, start: int, end: int) -> list[tuple[int, int, int, int]]:
    """Number, kind, and first and last position of the content of each field of a message."""
    fields = []
    while start < end:
        tag, start = _varint(data, start, end)
        number, kind = tag >> 3, tag & 7
        if kind == BYTES:
            size, start = _varint(data, start, end)
        elif kind == VARINT:
            size = _varint(data, start, end)[1] - start
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if size < 0 or start + size > end:
            raise ValueError("it is not an ONNX graph, or a part of one")
        fields.append((number, kind, start, start + size))
        start += size
    return fields


def _varint(data: mmap.mmap, start: int, end: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the position behind it."""
    value = 0
    for position in range(start, min(end, start + LONGEST_VARINT)):
        value |= (data[position] & 0x7F) << 7 * (position - start)
        if data[position] < 0x80:
            return value, position + 1
    raise ValueError("it is not an ONNX graph, or a part of one")
