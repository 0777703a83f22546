"""From a recipe's data section to the rows of a training and of its calibration, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import split_rows
from de3bert.data.table import Table
from de3bert.data.words import WordTable, read_words
from de3bert.errors import UsageError
from de3bert.exits.word_curve import check_metric
from de3bert.training.recipe import DataRecipe

__all__ = ["Splits", "WordSplits", "read_splits", "read_word_splits"]


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


@dataclass(frozen=True)
class WordSplits:
    """The sentences of a training, and the numbers of their tags beside them."""

    labels: LabelSet
    train: WordTable
    train_labels: list[NDArray[np.int64]]  # (words,) each
    calibration: WordTable
    calibration_labels: list[NDArray[np.int64]]

    def fingerprint(self) -> str:
        """Names the sentences, so that a training never goes on with others."""
        names = (self.train.sha256, self.calibration.sha256, *self.labels.names)
        text = "|".join(str(name) for name in (len(self.train), len(self.calibration), *names))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


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
    parts = split_rows(encoded, {"train": 1.0 - share, "calibration": share}, seed, labels.names)
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


def read_word_splits(data: DataRecipe, seed: int) -> WordSplits:
    """Reads train and calibration sentences; without a calibration file a share is held."""
    train = _read_words(data, data.train, data.train_split, data.limit)
    labels = LabelSet.from_values(
        (tag for tags in train.known_tags for tag in tags), names=train.label_names
    )
    check_metric(data.metric, labels.names)
    numbers = _numbers(labels, train)
    if data.calibration is not None:
        calibration = _read_words(data, data.calibration, data.calibration_split)
        return WordSplits(labels, train, numbers, calibration, _numbers(labels, calibration))
    kept, held = _split(numbers, data.calibration_share, seed)
    return WordSplits(
        labels,
        train.take(kept),
        [numbers[index] for index in kept],
        train.take(held),
        [numbers[index] for index in held],
    )


def _read_words(
    data: DataRecipe, source: str, split: str | None, limit: int | None = None
) -> WordTable:
    config = data.config if split is not None or not Path(source).is_file() else None
    return read_words(
        source, words=data.text, tags=data.label, config=config, split=split, limit=limit,
        label_names=data.numbered_names,
    )  # fmt: skip


def _numbers(labels: LabelSet, table: WordTable) -> list[NDArray[np.int64]]:
    tags = table.known_tags
    flat = labels.encode((tag for row in tags for tag in row), names=table.label_names)
    return np.split(flat, np.cumsum([len(sentence) for sentence in tags])[:-1])


def _split(
    numbers: Sequence[NDArray[np.int64]], share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Sentences to train on and sentences to hold; a tag is never held alone."""
    rows = len(numbers)
    wanted = max(1, round(share * rows))
    if wanted >= rows:
        raise UsageError(f"{rows} sentences are too few to hold {share:g} of them for calibration.")
    mixed = np.random.default_rng(seed).permutation(rows).tolist()
    held, kept = mixed[:wanted], mixed[wanted:]
    trained = {tag for index in kept for tag in numbers[index].tolist()}
    for index in list(held):
        if not trained.issuperset(numbers[index].tolist()) and len(held) > 1:
            held.remove(index)
            kept.append(index)
            trained.update(numbers[index].tolist())
    return sorted(kept), sorted(held)
