"""From stored bytes to text: compression, encoding, and what can be wrong with them."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from de3bert.errors import De3Error, UsageError
from de3bert.limits import GIB, RATIO, check_limit, limit, shown_size, unpacked_limit

__all__ = ["blocks_of", "decode", "is_packed", "open_blocks", "read_bytes", "read_stream"]

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BLOCK = 1 << 16


def is_packed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def read_bytes(path: Path) -> tuple[bytes, str]:
    """The content of a file, unpacked, and the hash of it as stored; sizes have limits."""
    size = _size(path)
    if not is_packed(path):
        check_limit("unpacked", size, str(path))
    most = unpacked_limit(size) if is_packed(path) else limit("unpacked")
    data = b"".join(_content(_opened(path), path, size, most))
    if not is_packed(path) or not path.is_file():  # a pipe cannot be read again
        return data, hashlib.sha256(data).hexdigest()
    with _opened(path) as stored:
        return data, hashlib.file_digest(stored, "sha256").hexdigest()  # type: ignore[arg-type]


def read_stream(stream: IO[Any], source: str) -> bytes:
    """All of a stream; its size has the limit of files."""
    return b"".join(_bounded(blocks_of(stream), source, None, limit("unpacked")))


def open_blocks(path: Path) -> Iterator[bytes]:
    """The content of a file block by block, unpacked: for those who hold none of it for long.

    However much it is in all; but what is packed may not become more than it can in earnest.
    """
    size = _size(path)
    most = max(unpacked_limit(size), RATIO * size) if is_packed(path) else None
    file = _opened(path)  # now, so that a file that cannot be read is refused at once
    return _content(file, path, size, most)


def blocks_of(stream: IO[Any]) -> Iterator[bytes]:
    """The bytes of a stream as they come: a pause in them is no reason to wait for more."""
    # The bytes below a text stream: its own decoding would hide where the input is not UTF-8.
    bottom = getattr(stream, "buffer", stream)
    # The file below the buffer, where there is one: the buffer has a lock, and a thread that waits
    # for input with it held brings the interpreter down when the program ends.
    bottom = getattr(bottom, "raw", bottom)
    read = getattr(bottom, "read1", bottom.read)
    while block := read(BLOCK):
        yield block.encode("utf-8", "surrogateescape") if isinstance(block, str) else block


def decode(data: bytes, source: str) -> str:
    """UTF-8 text; a byte order mark at the start is dropped."""
    check_not_utf16(data, source)
    mark = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    try:
        return data[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        offset = mark + error.start
        row = data.count(b"\n", 0, offset) + 1
        raise De3Error(
            f"{source} is not UTF-8: line {row} holds the byte 0x{data[offset]:02x} "
            f"(byte {offset} of the file). Save it as UTF-8, "
            "for instance with: iconv -f latin1 -t utf-8"
        ) from error


def check_not_utf16(data: bytes, source: str) -> None:
    """De3Error by the mark at the start of a UTF-16 file."""
    if data.startswith(UTF16_MARKS):
        raise De3Error(f"{source} is UTF-16, not UTF-8. Save it again as UTF-8.")


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb", buffering=0)  # a pipe gives what it has
    except OSError as error:
        raise De3Error(f"Could not read {path}: {error.strerror}.") from error


def _size(path: Path) -> int:
    """Bytes of a file; 0 of a pipe, whose size is unknown."""
    try:
        found = path.stat()
    except OSError as error:
        raise De3Error(f"Could not read {path}: {error.strerror}.") from error
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _content(file: IO[bytes], path: Path, size: int, most: int | None) -> Iterator[bytes]:
    with file:
        if is_packed(path):
            yield from _bounded(_gunzipped(file, str(path)), str(path), size, most)
        else:
            yield from _bounded(blocks_of(file), str(path), None, most)


def _gunzipped(file: IO[bytes], source: str) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as unpacked:
        while True:
            try:
                block = unpacked.read1(BLOCK)
            except EOFError as error:
                raise De3Error(
                    f"{source} is truncated: the compressed data ends too early. Copy or download "
                    "the file again."
                ) from error
            except (gzip.BadGzipFile, zlib.error) as error:
                raise De3Error(
                    f"{source} is not a valid gzip file ({error}). Copy it again, or drop .gz from "
                    "its name if it is not compressed."
                ) from error
            if not block:
                return
            yield block


def _bounded(
    blocks: Iterator[bytes], source: str, packed: int | None, most: int | None
) -> Iterator[bytes]:
    """The blocks, until there is more than may be."""
    size = 0
    try:
        for block in blocks:
            size += len(block)
            if most is not None and size > most:
                raise UsageError(_too_much(source, packed, most))
            yield block
    except OSError as error:
        raise De3Error(f"Could not read {source}: {error.strerror or error}.") from error


def _too_much(source: str, packed: int | None, most: int) -> str:
    what = "is" if packed is None else f"has {shown_size(packed)} and unpacks to"
    raised = max(2 * most // GIB, 8)
    return (
        f"{source} {what} more than {shown_size(most)}, the limit for it. If you trust its source, "
        f"raise the limit: de3 --limit unpacked={raised}GB ... (or DE3_MAX_UNPACKED in the "
        "environment)."
    )
