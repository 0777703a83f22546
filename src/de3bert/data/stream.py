"""Rows to predict on, one after another: what a model takes, or why a row cannot be answered."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from de3bert.data import records
from de3bert.data.columns import choose_columns
from de3bert.data.conll import ACCEPTED, LINES, sentences_of
from de3bert.data.decode import blocks_of, open_blocks
from de3bert.data.formats import FORMATS, check_suffix, read_file, suffix_of
from de3bert.data.hub import looks_like_id, read_hub
from de3bert.data.read import STDIN, no_file, place_of
from de3bert.data.records import Record, Records
from de3bert.data.tokens import TextInput
from de3bert.data.values import sound_text
from de3bert.data.words import choose_words, sound_words
from de3bert.errors import De3Error, UsageError

__all__ = ["Row", "Source", "stream_sentences", "stream_texts"]

Source = str | os.PathLike[str]
Take = Callable[[dict[str, Any]], Any]
AHEAD_ROWS, AHEAD_SIZE = 100, 16 << 20  # how far a column is looked for where there is no header
BLANK = 1 << 20  # bytes of nothing after which plain lines are expected


class Row(NamedTuple):
    """One row of a stream.

    Attributes:
        number: Which one it is, counted in `unit`.
        columns: The input's own columns, to be echoed.
        given: What a model takes: a text, a pair of texts or a list of words.
        fault: Why there can be no answer; then `given` is None.
        size: Characters of it, about.
    """

    number: int
    unit: Literal["row", "line"]
    columns: dict[str, Any]
    given: TextInput | list[str] | None
    fault: str
    size: int


def stream_texts(
    source: Source,
    stdin: IO[Any] | None = None,
    *,
    text: str | None = None,
    text_pair: str | None = None,
) -> Iterator[Row]:
    """Texts of a file of rows, a .txt file of lines, a hub id, or of standard input (`-`).

    Standard input is taken as JSON lines when it starts with `{`, else as one text per line.
    Little is held at a time. What is wrong with a row is stored with it; what is wrong with the
    whole source is raised when it is met.
    """

    def rows(found: Records) -> Iterator[Row]:
        return _rows(found, lambda names: _take_texts(names, found, text, text_pair))

    if os.fspath(source) == "-":
        return chain.from_iterable(map(rows, _standard_input(stdin, "text")))
    path = place_of(source)
    if suffix_of(path) == "txt" and path.exists() and not path.is_dir():
        return rows(records.lines(open_blocks(path), str(path)))
    return rows(_opened(path, source))


def stream_sentences(
    source: Source, stdin: IO[Any] | None = None, *, words: str | None = None
) -> Iterator[Row]:
    """Sentences as lists of words; plain lines of standard input are split at spaces."""

    def rows(found: Records) -> Iterator[Row]:
        return _rows(found, lambda names: _take_words(names, found, words))

    if os.fspath(source) == "-":
        return chain.from_iterable(map(rows, map(_split, _standard_input(stdin, "sentence"))))
    path = place_of(source)
    if suffix_of(path) in LINES and path.exists() and not path.is_dir():
        return rows(Records(str(path), sentences_of(open_blocks(path), str(path))))
    if suffix_of(path) in ("csv", "tsv") and path.exists():
        raise UsageError(f"{path} cannot hold lists of words. {ACCEPTED}")
    return rows(_opened(path, source))


def _standard_input(stdin: IO[Any] | None, what: str) -> Iterator[Records]:
    """One source, once there is something to tell its kind by."""
    if stdin is None:
        raise UsageError('"-" reads standard input, but there is no input.')
    start, blocks = _started(blocks_of(stdin))
    if start == b"{":
        yield records.json_lines(blocks, STDIN)
    else:
        yield records.lines(blocks, STDIN, what)


def _started(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first byte that is not blank, and all of the blocks."""
    held = b""
    for block in blocks:
        held += block
        if held.removeprefix(codecs.BOM_UTF8).strip() or len(held) > BLANK:
            break
    return held.removeprefix(codecs.BOM_UTF8).lstrip()[:1], chain([held], blocks)


def _opened(path: Path, source: Source) -> Records:
    """A file of rows by its suffix; folders and hub ids are read as a whole."""
    if path.is_dir() or (
        not path.exists() and suffix_of(path) not in FORMATS and looks_like_id(str(source))
    ):
        return records.of_frame(read_hub(str(source), None, None))
    if not path.exists():
        raise UsageError(no_file(path))
    suffix = check_suffix(path)
    if suffix == "parquet":
        return records.parquet(path)
    if suffix in ("csv", "tsv"):
        return records.delimited(path, "," if suffix == "csv" else "\t")
    start, blocks = _started(open_blocks(path))
    if suffix == "json" and start == b"[":
        return records.of_frame(read_file(path))
    return records.json_lines(blocks, str(path))


def _split(found: Records) -> Records:
    """Plain lines as lists of words."""
    if not found.plain:
        return found
    items = (
        item if item.fault else item._replace(columns={"words": item.columns["sentence"].split()})
        for item in found.items
    )
    return replace(found, items=items, names=["words"])


def _take_texts(names: Iterable[str], found: Records, text: str | None, pair: str | None) -> Take:
    if found.plain and (text or pair):
        raise UsageError(
            f'{found.source} holds plain lines, which have no column "{text or pair}". '
            "Leave out --text, or give JSON lines."
        )
    chosen = choose_columns(names, found.source, text=text, pair=pair, need_labels=False)
    first, second = chosen.text, chosen.pair
    if second is None:
        return lambda row: sound_text(_value(row, first), first)
    return lambda row: (
        sound_text(_value(row, first), first),
        sound_text(_value(row, second), second),
    )


def _take_words(names: Iterable[str], found: Records, words: str | None) -> Take:
    column = choose_words(names, found.source, None if found.plain else words)
    return lambda row: sound_words(_value(row, column), column)


def _value(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        raise De3Error(f'the row has no "{name}"')
    return row[name]


def _rows(found: Records, choose: Callable[[Iterable[str]], Take]) -> Iterator[Row]:
    take = None if found.names is None else choose(found.names)
    waiting: list[Record] = []  # sound rows, until one of them has the column
    for record in found.items:
        if take is None and not record.fault:
            waiting.append(record)
            take = _choice(waiting, choose)
        elif take is None and waiting:
            waiting.append(record)
        else:
            yield _row(record, found, take)
        if take is not None:
            yield from (_row(each, found, take) for each in waiting)
            waiting = []
    if waiting:  # raises: none of them had it
        choose(_names(waiting))


def _choice(waiting: list[Record], choose: Callable[[Iterable[str]], Take]) -> Take | None:
    """How to take a row, once there is one with the column; UsageError when none has it."""
    try:
        return choose(_names(waiting))
    except UsageError:
        if len(waiting) >= AHEAD_ROWS or sum(record.size for record in waiting) >= AHEAD_SIZE:
            raise
    return None


def _names(waiting: list[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in waiting for name in record.columns))


def _row(record: Record, found: Records, take: Take | None) -> Row:
    given, fault = None, record.fault
    if not fault and take is not None:
        try:
            given = take(record.columns)
        except De3Error as error:
            fault = str(error)
    return Row(record.number, found.unit, record.columns, given, fault, record.size)
