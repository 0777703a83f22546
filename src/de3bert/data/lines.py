"""Lines out of blocks of bytes: each as soon as it is whole, none longer than a text may be."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from de3bert.data.decode import check_not_utf16
from de3bert.errors import De3Error, UsageError
from de3bert.limits import check_limit, limit

__all__ = ["decoded", "escaped_byte", "lines_of", "not_utf8", "repaired"]


def lines_of(blocks: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Lines with their ends; a byte order mark before the first is dropped.

    Of a line over the limit only so much is kept that it can be told to be too long.
    """
    most = limit("text") + 1
    parts: list[bytes] = []  # of the line that has begun
    kept, number = 0, 0
    for block in blocks:
        *ends, tail = block.split(b"\n")
        for end in ends:
            number += 1
            line = b"".join([*parts, end])[:most] + b"\n"
            parts, kept = [], 0
            yield _unmarked(line, source) if number == 1 else line
        if tail and kept < most:
            parts.append(tail)
            kept += len(tail)
    if parts:
        line = b"".join(parts)[:most]
        yield _unmarked(line, source) if number == 0 else line


def decoded(line: bytes) -> str:
    """A line as text, or a De3Error that says what is wrong with it."""
    try:
        check_limit("text", len(line.rstrip(b"\r\n")), "the line")
        return line.decode("utf-8")
    except UsageError as error:
        raise De3Error(str(error)) from error
    except UnicodeDecodeError as error:
        raise De3Error(not_utf8(line[error.start])) from error


def not_utf8(byte: int) -> str:
    return f"not UTF-8: it holds the byte 0x{byte:02x}"


def escaped_byte(text: str) -> int | None:
    """The first byte that was no UTF-8, in a text that was decoded with `surrogateescape`."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return ord(text[error.start]) - 0xDC00
    return None


def repaired(text: str) -> str:
    """Such a text as it can be shown, with a replacement character for each of those bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _unmarked(line: bytes, source: str) -> bytes:
    check_not_utf16(line, source)
    return line.removeprefix(codecs.BOM_UTF8)
