"""From the bytes of a file to its text: compression, encoding, and what can be wrong with them."""

from __future__ import annotations

import codecs
import gzip
import zlib

from de3bert.errors import De3Error

__all__ = ["decode", "decompress"]

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decompress(data: bytes, source: str) -> bytes:
    """The content of a .gz file."""
    try:
        return gzip.decompress(data)
    except EOFError as error:
        raise De3Error(
            f"{source} is cut off: the compressed data ends too early. "
            "Copy or download the file again."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise De3Error(
            f"{source} is not a sound gzip file ({error}). Copy it again, or drop .gz from its "
            "name if it is not compressed."
        ) from error


def decode(data: bytes, source: str) -> str:
    """UTF-8 text; a byte order mark at the start is dropped."""
    if data.startswith(UTF16_MARKS):
        raise De3Error(f"{source} is UTF-16, not UTF-8. Save it again as UTF-8.")
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
