"""Texts as token rows, whichever tokenizer made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Encoded",
    "TextInput",
    "TokenRow",
    "by_length",
    "first_pieces",
    "known_words",
    "pieces_of",
    "sentence_of",
    "units_of",
    "word_row",
]

TextInput = str | tuple[str, str]
TokenRow = dict[str, list[int]]


@dataclass(frozen=True)
class Encoded:
    """Token rows before padding.

    Args:
        rows: one dict per text: `input_ids` and whatever else the model reads. A sentence of words
            has `word_ids` too: of each token the number of its word, from 1, and 0 where it is of
            none.
        cut: of each row whether its text was longer than the limit.
    """

    rows: list[TokenRow]
    cut: list[bool]

    @property
    def truncated(self) -> int:
        """How many were cut."""
        return sum(self.cut)

    @property
    def lengths(self) -> list[int]:
        return [len(row["input_ids"]) for row in self.rows]


def by_length(lengths: Sequence[int], size: int) -> list[NDArray[np.int64]]:
    """The numbers of rows in batches of similar length, short ones first: less padding."""
    order = np.argsort(lengths, kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]


def units_of(rows: Sequence[TokenRow]) -> NDArray[np.int64]:
    """How many units of each row the model sees: the words of a sentence, or the text. (rows,)"""
    return np.array([max(row.get("word_ids", (1,))) for row in rows], dtype=np.int64)


def sentence_of(rows: Sequence[TokenRow]) -> NDArray[np.int64] | None:
    """Of each unit the number of its row, (units,); None where every row is one unit."""
    if not rows or "word_ids" not in rows[0]:
        return None
    return np.repeat(np.arange(len(rows)), units_of(rows))


def first_pieces(word_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True at the first token of every word, (rows, tokens)."""
    before = np.pad(word_ids[:, :-1], ((0, 0), (1, 0)))
    return np.asarray((word_ids > 0) & (word_ids != before))


def pieces_of(row: TokenRow) -> NDArray[np.int64]:
    """How many tokens each word of a sentence is, (words,)."""
    return np.bincount(row["word_ids"])[1:]


def word_row(encoding: Any) -> list[int]:
    """The `word_ids` of a sentence as the tokenizers library gives it."""
    return [0 if number is None else number + 1 for number in encoding.word_ids]


def known_words(
    sentences: Sequence[Sequence[str]], encodings: Sequence[Any], unknown: str
) -> list[list[str]] | None:
    """The sentences with `unknown` for words that the tokenizer left out; None where it left none.

    A word of control characters alone gives no piece: unknown is what it is. Words that were cut
    off at the end are not meant.
    """
    mended, bare = [], False
    for words, encoding in zip(sentences, encodings, strict=True):
        parts = (encoding, *encoding.overflowing)
        seen = {number for part in parts for number in part.word_ids}
        mended.append([word if at in seen else unknown for at, word in enumerate(words)])
        bare = bare or not seen.issuperset(range(len(words)))
    return mended if bare else None
