"""Sentences as lists of words with a tag each: list columns, or a word and its tag per line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from de3bert.data.columns import SINGLES, shown_names
from de3bert.data.conll import ACCEPTED, LINES, sentences_of
from de3bert.data.decode import read_bytes
from de3bert.data.formats import suffix_of
from de3bert.data.frame import Frame, Unreadable
from de3bert.data.label_names import LabelNames
from de3bert.data.labels import label_value
from de3bert.data.read import place_of, read_frame
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.limits import check_limit

__all__ = ["choose_words", "read_words", "sound_words"]

WORDS = ("tokens", "words")
TAGS = ("tags", "ner_tags", "labels", "label")
HALF_SURROGATE = re.compile("[\ud800-\udfff]")  # of a pair of surrogates
SHOWN = 80  # characters of a value that a message repeats


def read_words(
    source: object,
    *,
    words: str | None = None,
    tags: str | None = None,
    split: str | None = None,
    config: str | None = None,
    need_tags: bool = True,
    limit: int | None = None,
    label_names: LabelNames | None = None,
) -> Table[list[str]]:
    """Checked sentences, with tags if they are needed or happen to be there.

    Args:
        source: A file (list columns, or CoNLL lines), a dict of columns or another table, a hub id.
        words: Column of the word lists; by default `tokens` or `words`.
        tags: Column of the tag lists; by default `tags`, `ner_tags` or `labels`.
        label_names: What integer tags stand for, where the data does not say it.

    Example:
        >>> read_words({"words": [["Ada", "wrote"]], "tags": [["B-PER", "O"]]}).labels
        [['B-PER', 'O']]
    """
    if limit is not None and limit < 1:
        raise UsageError(f"The limit on sentences must be 1 or more, got {limit}.")
    frame = _read(source, split, config).head(limit)
    table = _table(frame, words, tags, need_tags)
    return table if label_names is None else replace(table, label_names=label_names)


def _read(source: object, split: str | None, config: str | None) -> Frame:
    if not isinstance(source, str | os.PathLike):
        return read_frame(source, split, config)
    path = place_of(source)
    if path.is_file() and suffix_of(path) in LINES:
        return _read_lines(path)
    if path.is_file() and suffix_of(path) not in ("json", "jsonl", "parquet"):
        raise UsageError(f"{path} cannot hold lists of words. {ACCEPTED}")
    return read_frame(source, split, config)


def _read_lines(path: Path) -> Frame:
    data, digest = read_bytes(path)
    rows = list(sentences_of([data], str(path)))
    for row in rows:
        if row.fault:
            raise De3Error(f"{path}, {row.fault}")
    names = rows[0].columns
    columns: dict[str, list[Any]] = {name: [row.columns[name] for row in rows] for name in names}
    return Frame(columns, str(path), [row.number for row in rows], sha256=digest, unit="line")


def _table(frame: Frame, words: str | None, tags: str | None, need_tags: bool) -> Table[list[str]]:
    column = choose_words(frame.columns, frame.source, words)
    sentences = [_words(value, frame, column, at) for at, value in enumerate(frame.columns[column])]
    chosen = _column(frame.columns, frame.source, tags, TAGS, "tags", "--label", need_tags)
    found = None
    if chosen is not None:
        found = [
            _tags(value, len(sentences[at]), frame, chosen, at)
            for at, value in enumerate(frame.columns[chosen])
        ]
    names = frame.class_names.get(chosen) if chosen is not None else None
    return Table(
        sentences,
        labels=found,
        columns=frame.columns,
        source=frame.source,
        sha256=frame.sha256,
        text_column=column,
        label_column=chosen,
        label_names=names,
    )


def choose_words(names: Iterable[str], source: str, given: str | None) -> str:
    """The column of the word lists: as given, or by its usual names."""
    column = _column(names, source, given, WORDS, "words", "--text", needed=True)
    assert column is not None
    return column


def _column(
    names: Iterable[str],
    source: str,
    given: str | None,
    usual: tuple[str, ...],
    what: str,
    option: str,
    needed: bool,
) -> str | None:
    have = list(names)
    if given is not None and given not in have:
        raise UsageError(f'{source} has no column "{given}". Columns found: {shown_names(have)}.')
    by_name = {name.strip().lower(): name for name in reversed(have)}
    chosen = given or next((by_name[name] for name in usual if name in by_name), None)
    if chosen is None and needed:
        hint = ""
        if any(name in by_name for name in SINGLES):
            hint = " It looks like rows of text: leave out the task to classify them."
        raise UsageError(
            f"{source} has no column of {what} (common names: {', '.join(usual)}); name yours with "
            f"{option}. Columns found: {shown_names(have)}.{hint}"
        )
    return chosen


def _words(value: object, frame: Frame, column: str, at: int) -> list[str]:
    try:
        return sound_words(value, column)
    except De3Error as error:
        raise type(error)(f"{frame.source}, {frame.places([at])}: {error}") from error


def sound_words(value: object, column: str = "words") -> list[str]:
    """One value as a sentence, or a De3Error that says why it is none."""
    if isinstance(value, Unreadable):
        raise De3Error(f'"{column}" cannot be read ({value.reason}). Repair or remove the row.')
    if not _is_list(value):
        raise UsageError(f'"{column}" is a {type(value).__name__}, not a list of words. {ACCEPTED}')
    found: list[str] = list(value)  # type: ignore[call-overload]
    if not found:
        raise De3Error(f'"{column}" is an empty sentence. Remove the row.')
    bad = next((at for at, word in enumerate(found) if not _is_word(word)), None)
    if bad is not None:
        shown = repr(found[bad])[:SHOWN]
        raise De3Error(f'"{column}" holds {shown}, which is not a word. Repair or remove the row.')
    check_limit("text", sum(map(len, found)), f'"{column}"')
    return found


def _is_list(value: object) -> bool:
    if isinstance(value, str | bytes | Mapping | Set):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__iter__")


def _is_word(word: object) -> bool:
    """A text with something in it that can be written as UTF-8."""
    return isinstance(word, str) and bool(word.strip()) and not HALF_SURROGATE.search(word)


def _tags(value: object, words: int, frame: Frame, column: str, at: int) -> list[str | int]:
    place = f"{frame.source}, {frame.places([at])}"
    if not _is_list(value):
        kind = type(value).__name__
        raise UsageError(f'{place}: "{column}" is a {kind}, not a list with a tag for each word.')
    found = [label_value(tag, place) for tag in value]  # type: ignore[attr-defined]
    if len(found) != words:
        raise De3Error(f"{place}: {words} words but {len(found)} tags. Every word needs one tag.")
    return found
