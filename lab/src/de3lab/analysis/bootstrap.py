"""Scores at equal layer speed-ups on other rows like these: whole curves of resampled rows.

A resample of the rows is a weight per row. The thresholds at which rows move from one exit to
another stay what they are, so that a curve under other weights takes two running sums and no
sorting: a thousand resamples cost a second or two and not minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.family import Family
from de3bert.exits.metrics import METRICS, Counts
from de3bert.exits.sweep import find_moves, signal_matrix, windowed
from de3bert.exits.trace import Trace
from de3lab.statistics import RESAMPLES, row_counts

__all__ = ["resampled_scores"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def resampled_scores(
    trace: Trace,
    family: Family,
    speeds: Sequence[float],
    metric: str,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """The score at each layer speed-up on each of many resamples of the rows.

    Equal to `curve(trace.take(drawn), family, metric).at(speed)` for every draw of rows with
    replacement. Traces of the same rows get the same draws from the same seed, so differences
    between the results of two calls are paired.

    Args:
        family: a threshold family; it must reach the speeds.

    Returns:
        (resamples, speeds)
    """
    curves = _Curves(trace, family, metric)
    layers = trace.base / np.asarray(speeds, dtype=np.float64)
    # As floats, which hold counts exactly: products with whole numbers are several times slower.
    drawn = (each.astype(np.float64) for each in row_counts(trace.rows, resamples, seed))
    return np.stack([curves.at(layers, counts) for some in drawn for counts in some])


class _Curves:
    """The moves of a threshold family, to be summed under any weights of the rows."""

    def __init__(self, trace: Trace, family: Family, metric: str) -> None:
        assert family.signal is not None  # a threshold family has one
        moves = find_moves(windowed(signal_matrix(trace, family.signal), family.count))
        self.row = moves.row
        self.rows, self.depth, self.metric = trace.rows, trace.depth, METRICS[metric]
        # Where the threshold is between two values: before all moves, and after the last of each.
        self.points = np.append(0, 1 + np.flatnonzero(moves.ends))
        layer = np.asarray(trace.exit_layers, dtype=np.int64)
        self.steps = layer[moves.target] - layer[moves.source]
        one = np.eye(trace.classes)
        self.actual = one[trace.known_labels]  # (rows, classes)
        final = one[trace.predictions[:, -1]]
        change = one[trace.predictions[moves.row, moves.target]]
        change -= one[trace.predictions[moves.row, moves.source]]
        self.full = np.hstack([final, final * self.actual])  # predicted, hits: (rows, 2 classes)
        self.change = np.hstack([change, change * self.actual[moves.row]])  # (moves, 2 classes)

    def at(self, layers: Floats, drawn: Floats) -> Floats:
        """The score at each mean number of layers, linear in between. (speeds,) -> (speeds,)"""
        times = drawn[self.row]
        spent = np.append(0, np.cumsum(times * self.steps))[self.points]
        means = (self.rows * self.depth + spent) / self.rows
        right = np.searchsorted(-means, -layers).clip(max=len(means) - 1)  # first not above
        left = np.maximum(right - 1, 0)
        scores = [self._scores(drawn, times, side) for side in (left, right)]
        width = means[left] - means[right]
        share = np.where(width > 0, (means[left] - layers) / np.where(width > 0, width, 1), 1.0)
        # The first or last point itself where it is the speed but for rounding.
        return np.asarray(scores[0] + share.clip(0, 1) * (scores[1] - scores[0]))

    def _scores(self, drawn: Floats, times: Floats, points: Integers) -> Floats:
        """The metric at some points of the curve, (points,)."""
        start = drawn @ self.full
        counts = [start + times[:end] @ self.change[:end] for end in self.points[points]]
        predicted, hits = np.split(np.asarray(counts).astype(np.int64), 2, axis=1)
        actual = (drawn @ self.actual).astype(np.int64)
        return self.metric(Counts(self.rows, actual, predicted, hits))
