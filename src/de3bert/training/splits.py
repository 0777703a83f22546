"""From a recipe's data section to the rows of a training and of its calibration, without torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.labels import LabelSet
from de3bert.data.table import Table
from de3bert.tasks import TASKS, Task
from de3bert.training.recipe import DataRecipe

__all__ = ["Splits", "read_source", "read_splits"]


@dataclass(frozen=True)
class Splits:
    """The rows of a training with their encoded labels (`Task.numbers`)."""

    labels: LabelSet
    train: Table[Any]
    train_labels: Any
    calibration: Table[Any]
    calibration_labels: Any
    task: Task[Any] = TASKS["text-classification"]

    def fingerprint(self) -> str:
        """Names the rows, so that a training is never resumed with others."""
        names = (self.train.sha256, self.calibration.sha256, *self.labels.names)
        text = "|".join(str(name) for name in (len(self.train), len(self.calibration), *names))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_splits(data: DataRecipe, seed: int) -> Splits:
    """Reads train and calibration rows; without a calibration file a share of train is held."""
    task = TASKS[data.task]
    train = read_source(data, data.train, data.train_split, data.limit)
    given = task.unit_labels(train)
    labels = LabelSet.from_values(given, names=train.label_names)
    task.check_metric(data.metric, labels.names)
    encoded = task.numbers(labels, train)
    if data.calibration is not None:
        calibration = read_source(data, data.calibration, data.calibration_split)
        numbers = task.numbers(labels, calibration)
        return Splits(labels, train, encoded, calibration, numbers, task)
    kept, held = task.split(encoded, data.calibration_share, seed, labels.names)
    return Splits(
        labels,
        train.take(kept.tolist()),
        _chosen(encoded, kept),
        train.take(held.tolist()),
        _chosen(encoded, held),
        task,
    )


def _chosen(numbers: Any, rows: NDArray[np.int64]) -> Any:
    return numbers[rows] if isinstance(numbers, np.ndarray) else [numbers[row] for row in rows]


def read_source(
    data: DataRecipe, source: str, split: str | None, limit: int | None = None
) -> Table[Any]:
    """The rows of one source of a recipe."""
    # A configuration names a part of a hub id; a plain file beside it has none.
    config = data.config if split is not None or not Path(source).is_file() else None
    return TASKS[data.task].read(
        source,
        text=data.text,
        text_pair=data.text_pair,
        label=data.label,
        config=config,
        split=split,
        limit=limit,
        label_names=data.numbered_names,
    )
