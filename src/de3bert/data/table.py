"""Rows of text with their labels, as every verb of the package takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, SupportsIndex

from typing_extensions import TypeVar

from de3bert.data.label_names import LabelNames

__all__ = ["Table"]

Value = TypeVar("Value")
Text = TypeVar("Text", default=str)


@dataclass(frozen=True)
class Table(Generic[Text]):
    """Checked rows: no text is empty, and labels are all strings or all integers.

    Attributes:
        texts: The text of each row; for taggers the words of each sentence.
        pairs: The second text of each row, for tasks on pairs.
        labels: The labels as given (`LabelSet` turns them into class numbers); for taggers a list
            for each row, with a tag for every word.
        columns: Every column of the source, to be echoed with predictions.
        source: The file, hub id or kind of object the rows came from.
        sha256: Hash of the source, so that results can name the exact data.
        text_column: Name of the column `texts` came from; likewise the next two.
        label_names: What integer labels stand for, where the data or the user says it.
    """

    texts: list[Text]
    pairs: list[str] | None = None
    labels: list[Any] | None = None
    columns: dict[str, list[Any]] = field(default_factory=dict)
    source: str = ""
    sha256: str = ""
    text_column: str = "text"
    pair_column: str | None = None
    label_column: str | None = None
    label_names: LabelNames | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def inputs(self) -> list[Text] | list[tuple[Text, str]]:
        """What a tokenizer takes: one text, or a tuple of two, per row."""
        if self.pairs is None:
            return list(self.texts)
        return list(zip(self.texts, self.pairs, strict=True))

    def take(self, indices: Sequence[SupportsIndex]) -> Table[Text]:
        """The rows at `indices` (a list or an integer array), in that order."""
        chosen = [int(index) for index in indices]
        return replace(
            self,
            texts=_pick(self.texts, chosen),
            pairs=None if self.pairs is None else _pick(self.pairs, chosen),
            labels=None if self.labels is None else _pick(self.labels, chosen),
            columns={name: _pick(values, chosen) for name, values in self.columns.items()},
        )


def _pick(values: Sequence[Value], indices: list[int]) -> list[Value]:
    return [values[index] for index in indices]
