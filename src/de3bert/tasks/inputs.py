"""Texts and sentences in whatever Python users hold them, as plain lists of plain strings.

A bundle and a model folder take the same things, because both come through here. What is not a text
is refused with its position, its type and what is accepted, before a tokenizer sees it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from de3bert.data.tokens import TextInput
from de3bert.errors import UsageError
from de3bert.limits import check_limit, limit
from de3bert.printable import kind_of, shown

__all__ = ["as_sentences", "as_stream", "as_texts"]

ACCEPTED = (
    "Give one text, or texts in a list, tuple, generator, one-dimensional array or column; pairs "
    'as two texts each: [("first", "second"), ...].'
)
SENTENCES = 'Give every sentence as a list of words: [["Ada", "wrote", "it"], ...].'
# Can be iterated, but not over texts in an order.
NO_ROWS = (bytes, bytearray, memoryview, Mapping, set, frozenset)
LISTED = ("tolist", "to_pylist", "to_list")  # numpy and pandas; Arrow; polars


def as_texts(given: Any, of_pairs: bool | None, first: int | None = None) -> list[TextInput]:
    """The texts or pairs of a call, all of one kind and of the kind that the model reads.

    Args:
        of_pairs: whether the model reads pairs; None when it is not known.
        first: of a stream, the number of the first row; its end is not known.
    """
    if isinstance(given, str) or (of_pairs and _is_pair(given)):
        given = [given]
    rows, longest = as_rows(given, ACCEPTED), limit("text")
    made = [
        row if type(row) is str and row.isascii() and row.strip() and len(row) <= longest
        else _row(row, _place("Text", index, len(rows), first))
        for index, row in enumerate(rows)
    ]  # fmt: skip
    kinds = [isinstance(row, tuple) for row in made]
    other = next((index for index, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        raise UsageError(
            f"{_place('Text', other, len(rows), first)} is not of the same kind as the first: give "
            "single texts or pairs of texts, not both in one call."
        )
    if made and of_pairs is not None and kinds[0] != of_pairs:
        raise _other_kind(made[0], _place("text", 0, len(rows), first))
    return made


def as_sentences(given: Any, first: int | None = None) -> list[list[str]]:
    """The sentences of a call to a tagger, lists of words each; `first` as for texts."""
    if isinstance(given, str):
        raise UsageError(f"Give a list of sentences; for one sentence pass [words]. {SENTENCES}")
    rows = as_rows(given, SENTENCES)
    return [_words(row, _place("Sentence", at, len(rows), first)) for at, row in enumerate(rows)]


def as_rows(given: Any, accepted: str) -> list[Any]:
    """The rows of whatever holds them."""
    return list(_rows_of(given, accepted))


def as_stream(given: Any, of_pairs: bool | None) -> Iterator[Any]:
    """The same one by one, without holding more of it than its owner does; not yet looked at."""
    if isinstance(given, str) or (of_pairs and _is_pair(given)):
        return iter([given])
    return iter(_rows_of(given, ACCEPTED))


def _rows_of(given: Any, accepted: str) -> Iterable[Any]:
    if isinstance(given, list | tuple):
        return given
    dimensions = getattr(given, "ndim", 1)
    listed = next((name for name in LISTED if callable(getattr(given, name, None))), None)
    if isinstance(given, NO_ROWS) or dimensions == 0 or not (listed or isinstance(given, Iterable)):
        raise UsageError(f"These are not texts but {kind_of(given)}: {shown(given)}. {accepted}")
    if dimensions != 1:
        raise UsageError(
            f"These texts come as {kind_of(given)} of {dimensions} dimensions; give one column of "
            f"it. {accepted}"
        )
    rows: Iterable[Any] = getattr(given, listed)() if listed else given
    return rows


def _row(value: Any, place: str) -> TextInput:
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1:
        parts = list(value)
        if len(parts) != 2:
            raise UsageError(
                f"{place} is {kind_of(value)} of {len(parts)}: {shown(value)}. {ACCEPTED}"
            )
        return _text(parts[0], f"{place}, its first part,"), _text(
            parts[1], f"{place}, its second part,"
        )
    return _text(value, place)


def _text(value: object, place: str, accepted: str = ACCEPTED) -> str:
    if _is_missing(value):
        raise UsageError(f"{place} is missing ({shown(value)}). Leave it out. {accepted}")
    if not isinstance(value, str):
        raise UsageError(f"{place} is not a text but {kind_of(value)}: {shown(value)}. {accepted}")
    if not value.strip():
        raise UsageError(f"{place} is empty: {shown(value)}. Leave it out. {accepted}")
    try:
        check_limit("text", len(value.encode("utf-8")), place)
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{place} holds half of a surrogate pair at character {error.start + 1}, which is not "
            f"valid Unicode: {shown(value[error.start : error.start + 20])}. Repair or remove it."
        ) from None
    return str(value)  # numpy's strings become plain ones


def _words(value: Any, place: str) -> list[str]:
    if isinstance(value, str):
        raise UsageError(
            f"{place} is not a list of non-empty words: {shown(value)}. This model tags words; "
            "split texts into words first."
        )
    words = as_rows(value, SENTENCES) if isinstance(value, Iterable) else None
    if not words:
        raise UsageError(f"{place} is not a list of non-empty words: {shown(value)}. {SENTENCES}")
    return [
        _text(word, f"{place}, word {number},", SENTENCES)
        for number, word in enumerate(words, start=1)
    ]


def _is_pair(given: object) -> bool:
    """One bare pair. A list of two may as well be two texts, and is not taken for one."""
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and all(isinstance(part, str) for part in cast("tuple[object, object]", given))
    )


def _is_missing(value: object) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    # By name, because pandas is not imported here; its missing values are not floats.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _other_kind(row: TextInput, place: str) -> UsageError:
    if isinstance(row, str):
        return UsageError(
            f"This model reads pairs of texts, but {place} is a single one: {shown(row)}. Give "
            'pairs: [("first text", "second text"), ...]; in a file the second text is a column '
            "of its own (--text-pair)."
        )
    return UsageError(
        f"This model reads single texts, but {place} is a pair: {shown(row)}. Give single texts: "
        '["text", ...]; in a file name one column of text (--text).'
    )


def _place(what: str, index: int, total: int, first: int | None = None) -> str:
    """Which row a message is about, counted from 1."""
    return f"{what} {index + 1} of {total}" if first is None else f"{what} {first + index}"
