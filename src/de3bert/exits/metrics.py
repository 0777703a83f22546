"""Scores of predicted classes, computed from counts so that whole curves are scored at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from de3bert.errors import UsageError
from de3bert.registry import Registry

__all__ = [
    "METRICS",
    "Counts",
    "check_metric",
    "interval",
    "per_class",
    "score",
    "score_interval",
]

Scores: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """All that the metrics need. Leading axes are points of a curve, resamples, or nothing.

    Attributes:
        rows: number of rows.
        actual: rows of each class, (classes,) or (..., classes).
        predicted: rows given each class, (..., classes).
        hits: rows of each class that were given it, (..., classes).
    """

    rows: int
    actual: Integers
    predicted: Integers
    hits: Integers

    @classmethod
    def of(cls, labels: ArrayLike, predictions: ArrayLike, classes: int) -> Counts:
        table = confusion(labels, predictions, classes)
        return cls.from_confusion(table)

    @classmethod
    def from_confusion(cls, table: Integers) -> Counts:
        """From confusion tables (..., actual class, predicted class), all of the same total."""
        rows = int(table.reshape(-1, *table.shape[-2:])[0].sum())
        hits = np.diagonal(table, axis1=-2, axis2=-1)
        return cls(rows, table.sum(axis=-1), table.sum(axis=-2), hits)


Metric: TypeAlias = Callable[[Counts], Scores]
METRICS: Registry[Metric] = Registry("metric")


@METRICS.register("accuracy")
def accuracy(counts: Counts) -> Scores:
    """Share of rows that are right."""
    return np.asarray(counts.hits.sum(axis=-1) / counts.rows)


@METRICS.register("f1")
def f1(counts: Counts) -> Scores:
    """F1 of class 1 of two, as GLUE scores MRPC and QQP."""
    check_metric("f1", counts.hits.shape[-1])
    return _f1_of_each(counts)[..., 1]


@METRICS.register("macro_f1")
def macro_f1(counts: Counts) -> Scores:
    """Mean of the F1 of all classes; a class that is never seen nor predicted counts 0."""
    return np.asarray(_f1_of_each(counts).mean(axis=-1))


@METRICS.register("matthews")
def matthews(counts: Counts) -> Scores:
    """Matthews correlation for any number of classes; 0 when it is not defined.

    (c s - sum_k t_k p_k) / sqrt((s^2 - sum p^2) (s^2 - sum t^2)), with s rows and c hits.
    """
    rows = float(counts.rows)
    actual, predicted = counts.actual.astype(np.float64), counts.predicted.astype(np.float64)
    covariance = counts.hits.sum(axis=-1) * rows - (actual * predicted).sum(axis=-1)
    spread = (rows**2 - (predicted**2).sum(axis=-1)) * (rows**2 - (actual**2).sum(axis=-1))
    return _divided(covariance, np.sqrt(spread))


def check_metric(name: str, classes: int) -> None:
    """UsageError for an unknown metric, and for one that is not for so many classes."""
    METRICS[name]
    if name == "f1" and classes != 2:
        raise UsageError(f"f1 is for 2 classes, this data has {classes}. Use macro_f1.")


def score(name: str, labels: ArrayLike, predictions: ArrayLike, classes: int) -> float:
    """One metric of one set of predictions.

    Example:
        >>> score("accuracy", [0, 1, 1, 0], [0, 1, 0, 0], classes=2)
        0.75
    """
    return float(METRICS[name](Counts.of(labels, predictions, classes)))


def per_class(
    labels: ArrayLike, predictions: ArrayLike, label_names: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows, precision, recall and F1 of each class; a share of nothing is 0."""
    counts = Counts.of(labels, predictions, len(label_names))
    precision = _divided(counts.hits, counts.predicted)
    recall = _divided(counts.hits, counts.actual)
    both = _f1_of_each(counts)
    return [
        {
            "label": name,
            "rows": int(counts.actual[k]),
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "f1": float(both[k]),
        }
        for k, name in enumerate(label_names)
    ]


def interval(hits: int, rows: int, level: float = 0.95) -> tuple[float, float]:
    """Exact (Clopper-Pearson) interval of a share: `hits` right out of `rows`."""
    from scipy.special import betaincinv  # here, because importing scipy is slow

    if not (0 <= hits <= rows and rows > 0 and 0 < level < 1):
        raise UsageError(f"No interval for {hits} of {rows} rows at level {level}.")
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, rows - hits + 1, tail))
    high = 1.0 if hits == rows else float(betaincinv(hits + 1, rows - hits, 1 - tail))
    return low, high


def score_interval(
    name: str,
    labels: ArrayLike,
    predictions: ArrayLike,
    classes: int,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Where the metric would lie on other data of this size: exact for accuracy, else bootstrap.

    Resampling rows with replacement is the same as drawing the confusion table from a multinomial
    distribution, so a thousand resamples cost a thousand small tables and not a thousand passes.
    """
    table = confusion(labels, predictions, classes)
    rows = int(table.sum())
    if name == "accuracy":
        return interval(int(np.trace(table)), rows, level)
    drawn = np.random.default_rng(seed).multinomial(rows, table.ravel() / rows, size=resamples)
    scores = METRICS[name](Counts.from_confusion(drawn.reshape(resamples, classes, classes)))
    tail = (1 - level) / 2
    low, high = np.quantile(scores, [tail, 1 - tail])
    return float(low), float(high)


def confusion(labels: ArrayLike, predictions: ArrayLike, classes: int) -> Integers:
    """Rows of each actual class given each class, (classes, classes)."""
    actual, given = np.asarray(labels, dtype=np.int64), np.asarray(predictions, dtype=np.int64)
    if actual.shape != given.shape or actual.ndim != 1 or actual.size == 0:
        raise UsageError(f"Cannot score {given.shape} predictions against {actual.shape} labels.")
    if min(actual.min(), given.min()) < 0 or max(actual.max(), given.max()) >= classes:
        raise UsageError(f"Labels and predictions must lie in 0 to {classes - 1}.")
    table = np.bincount(actual * classes + given, minlength=classes**2)
    return table.astype(np.int64).reshape(classes, classes)


def _f1_of_each(counts: Counts) -> Scores:
    return _divided(2 * counts.hits, counts.predicted + counts.actual)


def _divided(top: NDArray[Any], bottom: NDArray[Any]) -> Scores:
    """top / bottom, and 0 where bottom is 0: nothing to find means nothing found."""
    return np.asarray(np.where(bottom > 0, top, 0) / np.where(bottom > 0, bottom, 1))
