"""Token rows with labels for training and calibration."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from torch import Tensor, stack, tensor
from torch.utils.data import Dataset

from de3bert.data.tokens import Encoded, units_of
from de3bert.model.tokens import TextEncoder
from de3bert.model.word_encoder import NO_LABEL

__all__ = ["Rows", "collate"]


class Rows(Dataset[dict[str, object]]):
    """Token rows with labels, as the Trainer reads them.

    Args:
        labels: of each row the number of its class, or those of the tags of its words: what was
            cut off the row is cut off them.

    Attributes:
        units: how many units each row has: 1, or its words.
        extras: further values per row, (rows, ...) each, that losses read by name.
    """

    def __init__(self, encoded: Encoded, labels: Iterable[Any]) -> None:
        self.lengths = encoded.lengths
        self.units: list[int] = units_of(encoded.rows).tolist()
        self.extras: dict[str, Tensor] = {}
        self.rows = [
            {**row, "labels": own.tolist()[:count] if np.ndim(own) else int(own)}
            for row, own, count in zip(encoded.rows, labels, self.units, strict=True)
        ]

    def unit_labels(self) -> Tensor:
        """The class of every unit, (units,)."""
        return tensor(np.concatenate([np.atleast_1d(row["labels"]) for row in self.rows]))

    def only(self, numbers: Sequence[int]) -> Rows:
        """Some of the rows, in this order, without extras."""
        part = copy.copy(self)
        part.lengths = [self.lengths[number] for number in numbers]
        part.units = [self.units[number] for number in numbers]
        part.rows = [self.rows[number] for number in numbers]
        part.extras = {}
        return part

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, object]:
        row = self.rows[index]
        if not self.extras:
            return row
        return {**row, "extras": {name: values[index] for name, values in self.extras.items()}}


def collate(encoder: TextEncoder, batch: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A padded batch with its labels, and with the extras of its rows where there are some."""
    rows = [{k: v for k, v in row.items() if k not in ("labels", "extras")} for row in batch]
    padded = encoder.pad(rows)
    labelled: dict[str, Any] = {**padded, "labels": _labels([row["labels"] for row in batch])}
    if "extras" in batch[0]:
        names = batch[0]["extras"]
        labelled["extras"] = {name: stack([row["extras"][name] for row in batch]) for name in names}
    return labelled


def _labels(values: list[Any]) -> Tensor:
    """(rows,), or (rows, words) where every row has a list of them."""
    if not isinstance(values[0], list):
        return tensor(values)
    longest = max(map(len, values))
    return tensor([row + [NO_LABEL] * (longest - len(row)) for row in values])
