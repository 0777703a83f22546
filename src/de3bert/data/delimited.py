"""Rows of fields between separators: CSV and TSV, row by row, with what is wrong with each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from de3bert.data.columns import shown_names
from de3bert.data.lines import decoded
from de3bert.errors import De3Error
from de3bert.limits import limit

__all__ = ["Cells", "Quoting", "TextLines", "cells_of", "checked_header"]

Quoting = Literal[0, 3]  # csv.QUOTE_MINIMAL, csv.QUOTE_NONE
FIELD_LIMIT = 2**31 - 1  # the csv module takes no more


class Cells(NamedTuple):
    """One row.

    Attributes:
        row: Its number as a spreadsheet counts it; the header is 1.
        line: The line it starts on.
        end: The line it ends on; a quoted field may hold line ends.
        fault: What is wrong with it, as the end of a sentence that names it.
    """

    row: int
    line: int
    end: int
    values: list[str]
    fault: str = ""


class LineTooLongError(De3Error):
    """About one line; the next one follows."""


class TextLines(Iterator[str]):
    """Lines as the csv module takes them; one that is too long raises `LineTooLongError`.

    Bytes that are no UTF-8 are kept as `surrogateescape` does it: they spoil their own row only.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.lines = iter(lines)
        self.more: Iterator[str] = iter(())

    def __next__(self) -> str:
        for line in self.more:
            return line
        stored = next(self.lines)
        try:
            text = decoded(stored)
        except De3Error as error:
            if len(stored) > limit("text"):
                raise LineTooLongError(str(error)) from error
            text = stored.decode("utf-8", "surrogateescape")
        if "\r" in text[:-2]:  # files of old end their lines with it
            self.more = iter(io.StringIO(text, newline=""))
            return next(self.more)
        return text


def cells_of(lines: Iterable[str], delimiter: str, quoting: Quoting) -> Iterator[Cells]:
    """The rows that are not blank; the first one says how many fields the others should have."""
    # Its own limit is 128 KiB; whole documents can be longer than that.
    csv.field_size_limit(min(limit("text"), FIELD_LIMIT))
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] | None = None
    row = 0
    while True:
        row, line = row + 1, reader.line_num + 1
        try:
            values = next(reader)
        except StopIteration:
            return
        except (csv.Error, LineTooLongError) as error:
            yield Cells(row, line, reader.line_num, [], _broken(error, reader.line_num))
            continue
        if values:
            header = header or values
            fault = "" if len(values) == len(header) else _ragged(values, header)
            yield Cells(row, line, reader.line_num, values, fault)


def checked_header(cells: Cells | None, source: str) -> list[str]:
    """Names of the columns, which must differ, in the first row that there is."""
    if cells is None:
        raise De3Error(f"{source} is empty. It should have a text column.")
    if cells.fault:
        raise De3Error(f"{source}: the header cannot be read: {cells.fault}")
    header = [cell.strip() for cell in cells.values]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise De3Error(f"{source}: the header repeats {shown_names(map(repr, repeated))}.")
    return header


def _broken(error: Exception, line: int) -> str:
    if isinstance(error, LineTooLongError):
        return str(error)
    if "field limit" in str(error):
        return (
            f"a field up to line {line} is longer than {limit('text')} characters, the limit on "
            "one text. An unclosed quote causes this; otherwise raise the limit: de3 --limit "
            "text=1GB"
        )
    return (
        f"the quotes are broken at or before line {line} ({error}). "
        'A quote inside a quoted field is written twice: "".'
    )


def _ragged(cells: list[str], header: list[str]) -> str:
    return (
        f"{len(cells)} fields, the header has {len(header)} ({shown_names(header)}). "
        "Put fields that hold the separator in quotes."
    )
