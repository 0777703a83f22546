"""From a recipe's data section to token rows for training and calibration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, stack, tensor
from torch.utils.data import Dataset

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import split_rows
from de3bert.data.table import Table
from de3bert.data.tokens import Encoded
from de3bert.model.tokens import TextEncoder
from de3bert.model.word_encoder import NO_LABEL
from de3bert.training.recipe import DataRecipe

__all__ = ["Rows", "Splits", "collate", "read_splits"]


@dataclass(frozen=True)
class Splits:
    """The rows of a training, encoded labels beside them."""

    labels: LabelSet
    train: Table
    train_labels: np.ndarray  # (rows,)
    calibration: Table
    calibration_labels: np.ndarray

    def fingerprint(self) -> str:
        """Names the rows, so that a training never goes on with others."""
        names = (self.train.sha256, self.calibration.sha256, *self.labels.names)
        text = "|".join(str(name) for name in (len(self.train), len(self.calibration), *names))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


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


def read_splits(data: DataRecipe, seed: int) -> Splits:
    """Reads train and calibration rows; without a calibration file a share of train is held."""
    train = _read(data, data.train, data.train_split, data.limit)
    labels = LabelSet.from_values(train.labels or [], names=train.label_names)
    encoded = labels.encode(train.labels or [], names=train.label_names)
    if data.calibration is not None:
        calibration = _read(data, data.calibration, data.calibration_split)
        numbers = labels.encode(calibration.labels or [], names=calibration.label_names)
        return Splits(labels, train, encoded, calibration, numbers)
    share = data.calibration_share
    parts = split_rows(encoded, {"train": 1.0 - share, "calibration": share}, seed)
    kept, held = parts["train"], parts["calibration"]
    return Splits(
        labels, train.take(kept.tolist()), encoded[kept], train.take(held.tolist()), encoded[held]
    )


def _read(data: DataRecipe, source: str, split: str | None, limit: int | None = None) -> Table:
    # A configuration names a part of a hub id; a plain file beside it has none.
    config = data.config if split is not None or not Path(source).is_file() else None
    return read_table(
        source,
        text=data.text,
        text_pair=data.text_pair,
        label=data.label,
        config=config,
        split=split,
        limit=limit,
        label_names=data.numbered_names,
    )
