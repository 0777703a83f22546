"""Token rows with labels for training and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, stack, tensor
from torch.utils.data import Dataset

from de3bert.data.tokens import Encoded
from de3bert.model.tokens import TextEncoder
from de3bert.model.word_encoder import NO_LABEL

__all__ = ["Rows", "collate"]


class Rows(Dataset[dict[str, object]]):
    """Token rows with labels, as the Trainer reads them.

    Attributes:
        extras: further values per row, (rows, ...) each, that losses read by name.
    """

    def __init__(self, encoded: Encoded, labels: np.ndarray) -> None:
        self.lengths = encoded.lengths
        self.extras: dict[str, Tensor] = {}
        self.rows = [
            {**row, "labels": int(label)}
            for row, label in zip(encoded.rows, labels.tolist(), strict=True)
        ]

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
