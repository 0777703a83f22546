"""From a recipe's data section to token rows for training and calibration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor, tensor
from torch.utils.data import Dataset

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import split_rows
from de3bert.data.table import Table
from de3bert.data.tokens import Encoded
from de3bert.model.tokens import TextEncoder
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
    """Token rows with labels, as the Trainer reads them."""

    def __init__(self, encoded: Encoded, labels: np.ndarray) -> None:
        self.lengths = encoded.lengths
        self.rows = [
            {**row, "labels": int(label)}
            for row, label in zip(encoded.rows, labels.tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, object]:
        return self.rows[index]


def collate(encoder: TextEncoder, batch: Sequence[dict[str, object]]) -> dict[str, Tensor]:
    """A padded batch with its labels."""
    rows = [{k: v for k, v in row.items() if k != "labels"} for row in batch]
    padded = encoder.pad(rows)  # type: ignore[arg-type]
    return {**padded, "labels": tensor([row["labels"] for row in batch])}


def read_splits(data: DataRecipe, seed: int) -> Splits:
    """Reads train and calibration rows; without a calibration file a share of train is held."""
    train = _read(data, data.train, data.train_split, data.limit)
    labels = LabelSet.from_values(train.labels or [], names=train.label_names)
    encoded = labels.encode(train.labels or [])
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
    )
