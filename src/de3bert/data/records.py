"""Rows one after another, as they are read; an invalid row carries its error.

Nothing here holds more than a block, a line or a batch. Errors about the whole source are raised.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from de3bert.data.columns import shown_names
from de3bert.data.decode import is_packed, open_blocks, read_bytes
from de3bert.data.delimited import Cells, Quoting, TextLines, cells_of, checked_header
from de3bert.data.frame import Frame
from de3bert.data.lines import decoded, escaped_byte, lines_of, not_utf8, repaired
from de3bert.data.objects import checked_object, parsed
from de3bert.data.parquet import parquet_batches
from de3bert.errors import De3Error

__all__ = ["Record", "Records", "delimited", "json_lines", "lines", "of_frame", "parquet"]

SCANNED = 64 << 20  # bytes of a TSV file that decide whether its quotes are quotes


class Record(NamedTuple):
    """One row as read.

    Attributes:
        number: Which one it is, counted in the unit of its source.
        columns: What could be read of it.
        fault: Why it cannot be used; empty when it can.
        size: Characters or bytes of it, about.
    """

    number: int
    columns: dict[str, Any]
    fault: str = ""
    size: int = 0


@dataclass(frozen=True)
class Records:
    """A source of rows.

    Attributes:
        unit: What the numbers of its rows count.
        names: The names of the columns; None where each row brings its own.
        plain: It holds lines of text, and names in it are ours.
    """

    source: str
    items: Iterator[Record]
    unit: Literal["row", "line"] = "line"
    names: list[str] | None = None
    plain: bool = False


def lines(blocks: Iterable[bytes], source: str, what: str = "text") -> Records:
    """One text per line; a blank line is a fault, nothing but blank lines an error."""
    return Records(source, _lines(blocks, source, what), names=[what], plain=True)


def _lines(blocks: Iterable[bytes], source: str, what: str) -> Iterator[Record]:
    blank = Record(0, {}, f"the line is empty: give one {what} per line")
    said = 0  # lines of which something was said
    for number, stored in enumerate(lines_of(blocks, source), start=1):
        if not stored.strip():
            if said:
                said = number
                yield blank._replace(number=number)
            continue
        # Blank lines before the first text wait for it: without one the whole input is empty.
        yield from (blank._replace(number=before) for before in range(said + 1, number))
        said = number
        yield _line(number, stored, what)
    if not said:
        raise De3Error(f"{source} is empty: give one {what} per line.")


def _line(number: int, stored: bytes, what: str) -> Record:
    line = stored.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return Record(number, {what: decoded(line)}, size=len(line))
    except De3Error as error:
        return Record(number, {}, str(error))


def json_lines(blocks: Iterable[bytes], source: str) -> Records:
    """One JSON object per line; blank lines are passed over."""
    return Records(source, _json_lines(blocks, source))


def _json_lines(blocks: Iterable[bytes], source: str) -> Iterator[Record]:
    empty = True
    for number, stored in enumerate(lines_of(blocks, source), start=1):
        if not stored.strip():
            continue
        empty = False
        try:
            document = parsed(decoded(stored), "the line")
            yield Record(number, checked_object(document, "the line"), size=len(stored))
        except De3Error as error:
            yield Record(number, {}, str(error))
    if empty:
        raise De3Error(f"{source} is empty: give one JSON object per line.")


def delimited(path: Path, delimiter: str) -> Records:
    """Rows of a CSV or TSV file, below their header."""
    quoting: Quoting = csv.QUOTE_MINIMAL
    if delimiter == "\t" and path.is_file():
        quoting = _quoting(path)
    found = cells_of(TextLines(lines_of(open_blocks(path), str(path))), delimiter, quoting)
    header = checked_header(next(found, None), str(path))
    return Records(str(path), _below(found, header, str(path)), names=header)


def _quoting(path: Path) -> Quoting:
    """Whether quotes in a TSV file are quotes: many published ones do not quote."""

    def faults(quoting: Quoting) -> int:
        start = TextLines(_first(lines_of(open_blocks(path), str(path))))
        return sum(bool(cells.fault) for cells in cells_of(start, "\t", quoting))

    quoted = faults(csv.QUOTE_MINIMAL)
    plain = quoted and faults(csv.QUOTE_NONE) < quoted
    return csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL


def _first(found: Iterable[bytes]) -> Iterator[bytes]:
    """The lines to decide by; where the file breaks off is for the rows to say."""
    size = 0
    with contextlib.suppress(De3Error):
        for line in found:
            yield line
            size += len(line)
            if size > SCANNED:
                return


def _below(found: Iterable[Cells], header: list[str], source: str) -> Iterator[Record]:
    empty = True
    for cells in found:
        empty = False
        yield _row(cells, header)
    if empty:
        raise De3Error(f"{source} has a header ({shown_names(header)}) but no rows below it.")


def _row(cells: Cells, header: list[str]) -> Record:
    size = sum(map(len, cells.values))
    columns = dict(zip(header, cells.values, strict=False))
    wrong = next((byte for byte in map(escaped_byte, cells.values) if byte is not None), None)
    if wrong is None:
        return Record(cells.line, {} if cells.fault else columns, cells.fault, size)
    shown = {name: repaired(value) for name, value in columns.items()}
    return Record(cells.line, shown, cells.fault or f"the row is {not_utf8(wrong)}", size)


def parquet(path: Path) -> Records:
    """Rows of a Parquet file; one that is packed once more is unpacked as a whole."""
    stored = read_bytes(path)[0] if is_packed(path) else path
    names, batches = parquet_batches(stored, str(path))
    return Records(str(path), _batched(batches), "row", names)


def _batched(batches: Iterable[dict[str, list[Any]]]) -> Iterator[Record]:
    number = 0
    for batch in batches:
        for values in zip(*batch.values(), strict=True):
            number += 1
            size = sum(len(value) for value in values if isinstance(value, str))
            yield Record(number, dict(zip(batch, values, strict=True)), size=size)


def of_frame(frame: Frame) -> Records:
    """The rows of something that was read as a whole."""
    rows = (
        Record(number, {name: values[at] for name, values in frame.columns.items()})
        for at, number in enumerate(frame.row_numbers)
    )
    return Records(frame.source, rows, frame.unit, list(frame.columns))
