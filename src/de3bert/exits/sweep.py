"""Every distinct outcome of a threshold policy, from one sort and a few running sums.

Take one row and let the threshold rise. The row leaves at the first exit whose signal is below it,
so only exits that are lower than all exits before them ever matter: the records of the prefix
minimum. When the threshold passes the value of a record, the row moves there from its next deeper
record (or from the final head). Those moves are the only events. Sorted by value, running sums of
the change in layers and in the counts of right answers give every point of the curve exactly;
no grid of thresholds is involved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.family import Family
from de3bert.exits.metrics import METRICS, Counts
from de3bert.exits.signal import Signal
from de3bert.exits.trace import Trace

__all__ = ["Sweep", "sweep_thresholds"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK = 1 << 20  # class counts held in memory at once
STEP_BEYOND = 0.01  # how far the outermost thresholds lie beyond the outermost values


@dataclass(frozen=True, eq=False)
class Sweep:
    """The points of a curve, from no early exit to most; every array is (points,).

    Layers and milliseconds are sums over all rows; milliseconds are None without costs.
    """

    numbers: Floats
    layers: Integers
    scores: Floats
    milliseconds: Floats | None = None


@dataclass(frozen=True, eq=False)
class Moves:
    """One entry per event, sorted by value; every array is (events,)."""

    value: Floats
    row: Integers
    source: Integers
    target: Integers


def sweep_thresholds(
    trace: Trace, family: Family, metric: str, costs: Floats | None = None
) -> Sweep:
    """All points of a threshold family: thresholds, total layers executed, score and time.

    Args:
        costs: milliseconds of each row leaving at each exit, (rows, exits).
    """
    signal = family.signal
    assert signal is not None  # a threshold family has a signal
    moves = find_moves(windowed(signal_matrix(trace, signal), family.count))
    last_of_value = np.append(np.diff(moves.value) > 0, True)[: len(moves.value)]
    layer = np.asarray(trace.exit_layers, dtype=np.int64)
    full = trace.rows * trace.depth
    layers = full + np.cumsum(layer[moves.target] - layer[moves.source])[last_of_value]
    scores = np.concatenate(list(_scores(trace, moves, last_of_value, metric)))
    return Sweep(
        _thresholds(moves.value[last_of_value], signal),
        np.append(full, layers),
        scores,
        None if costs is None else _milliseconds(costs, moves, last_of_value),
    )


def _milliseconds(costs: Floats, moves: Moves, wanted: NDArray[np.bool_]) -> Floats:
    """The time before all moves, then after each move in `wanted`. (points,)"""
    full = costs[:, -1].sum()
    change = costs[moves.row, moves.target] - costs[moves.row, moves.source]
    return np.append(full, full + np.cumsum(change)[wanted])


def signal_matrix(trace: Trace, signal: Signal) -> Floats:
    """The signal at every internal exit, turned so that lower is safer. (rows, exits - 1)"""
    columns = [signal(trace.view(number)) for number in range(trace.exits - 1)]
    matrix = np.stack(columns, axis=1) if columns else np.empty((trace.rows, 0))
    return -matrix if signal.rising else matrix


def windowed(matrix: Floats, count: int) -> Floats:
    """The largest of each exit and the count - 1 before it; infinite where there are too few.

    "Below tau at `count` exits in a row" is "the largest of those is below tau", so patience with
    a threshold is an ordinary threshold on this matrix. Shape unchanged.
    """
    exits = matrix.shape[1]
    result = np.full_like(matrix, np.inf)
    if count <= exits:
        parts = [matrix[:, start : exits - count + 1 + start] for start in range(count)]
        result[:, count - 1 :] = np.maximum.reduce(parts)
    return result


def find_moves(matrix: Floats) -> Moves:
    """The events of all rows, sorted by value. (rows, internal exits) -> Moves"""
    exits = matrix.shape[1]
    lowest = np.minimum.accumulate(matrix, axis=1) if exits else matrix
    before = np.concatenate([np.full((len(matrix), 1), np.inf), lowest[:, :-1]], axis=1)
    rows, targets = np.nonzero(lowest < before[:, :exits])
    # Records come out row by row, shallow to deep: the next one of the same row is the source.
    deeper = np.append(targets[1:], exits)[: len(targets)]
    same_row = np.append(rows[1:] == rows[:-1], False)[: len(rows)]
    sources = np.where(same_row, deeper, exits)
    values = matrix[rows, targets]
    order = np.argsort(values, kind="stable")
    return Moves(values[order], rows[order], sources[order], targets[order])


def _scores(trace: Trace, moves: Moves, wanted: NDArray[np.bool_], metric: str) -> Iterator[Floats]:
    """The score before all moves, then after each move in `wanted`, chunk by chunk."""
    labels, classes = trace.known_labels, trace.classes
    counts = Counts.of(labels, trace.predictions[:, -1], classes)
    yield np.atleast_1d(METRICS[metric](counts))
    chunk = max(1, CHUNK // classes)
    for start in range(0, len(moves.value), chunk):
        part = slice(start, start + chunk)
        before = trace.predictions[moves.row[part], moves.source[part]]
        after = trace.predictions[moves.row[part], moves.target[part]]
        actual = labels[moves.row[part]]
        predicted = counts.predicted[None] + _running(before, after, classes)
        hits = counts.hits[None] + _running(
            np.where(before == actual, before, -1), np.where(after == actual, after, -1), classes
        )
        points = wanted[part]
        yield METRICS[metric](Counts(trace.rows, counts.actual, predicted[points], hits[points]))
        counts = Counts(trace.rows, counts.actual, predicted[-1], hits[-1])


def _running(minus: Integers, plus: Integers, classes: int) -> Integers:
    """Running sums of one class less and one class more per event; -1 is no class.

    (events,), (events,) -> (events, classes)
    """
    change = np.zeros((len(minus), classes + 1), dtype=np.int64)  # -1 falls into the extra column
    events = np.arange(len(minus))
    change[events, minus] -= 1
    change[events, plus] += 1
    return np.cumsum(change[:, :classes], axis=0)


def _thresholds(values: Floats, signal: Signal) -> Floats:
    """A threshold for no exit, then one strictly above each value and at most at the next one.

    Midpoints leave the most room for rounding. Between neighbouring floats there is no midpoint;
    the next value itself does, since the comparison is strict.
    """
    sign = -1.0 if signal.rising else 1.0
    safest = signal.kind.safest
    floor = -np.inf if safest is None else sign * safest
    if not values.size:
        return np.asarray([0.0 if safest is None else safest])
    first = floor if values[0] >= floor > -np.inf else values[0] - _beyond(values[0])
    between = values[:-1] + (values[1:] - values[:-1]) / 2
    between = np.where(between > values[:-1], between, values[1:])
    turned = np.concatenate([[first], between, [values[-1] + _beyond(values[-1])]])
    return sign * turned + 0.0  # + 0.0: no threshold prints as -0.0


def _beyond(value: float) -> float:
    return STEP_BEYOND * max(1.0, abs(value))
