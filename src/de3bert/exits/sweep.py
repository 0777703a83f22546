"""Every distinct outcome of a threshold policy, from one sort and a few running sums.

Take one row and let the threshold rise. The row leaves at the first exit whose signal is below it,
so only exits that are lower than all exits before them ever matter: the records of the prefix
minimum. When the threshold passes the value of a record, the row moves there from its next deeper
record (or from the final head). Those moves are the only events. Sorted by value, running sums of
the change in layers and in the counts of right answers give every point of the curve exactly;
no grid of thresholds is involved. A row may be a sentence, whose words move together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.family import Family
from de3bert.exits.scoring import Moves, running, scorer_of
from de3bert.exits.signals.parse import Signal
from de3bert.exits.trace import Trace
from de3bert.exits.units import Over, lower_is_safer, sentence_signal

__all__ = ["Sweep", "find_moves", "signal_matrix", "sweep_thresholds", "windowed"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP_BEYOND = 0.01  # how far the outermost thresholds lie beyond the outermost values


@dataclass(frozen=True, eq=False)
class Sweep:
    """The points of a curve, from no early exit to most; every array is (points,).

    Layers (by `Trace.weights`) and milliseconds are sums; milliseconds are None without costs.
    """

    numbers: Floats
    layers: Integers
    scores: Floats
    milliseconds: Floats | None = None


def sweep_thresholds(
    trace: Trace, family: Family, metric: str, costs: Floats | None = None
) -> Sweep:
    """All points of a threshold family: thresholds, total layers executed, score and time.

    Args:
        costs: milliseconds of each text or sentence leaving at each exit, (sentences, exits).
    """
    signal = family.signal
    assert signal is not None  # a threshold family has a signal
    matrix = signal_matrix(trace, signal, family.over)
    moves = find_moves(windowed(matrix, family.count))
    weight = trace.weights
    if trace.sentence is not None:
        weight = np.bincount(trace.sentence, weights=weight).astype(np.int64)
    return Sweep(
        _thresholds(moves.value[moves.ends], signal),
        running([weight * layer for layer in trace.exit_layers], moves).astype(np.int64),
        scorer_of(trace, metric).along(trace.predictions, moves),
        None if costs is None else running(list(costs.T), moves).astype(np.float64),
    )


def signal_matrix(trace: Trace, signal: Signal, over: Over = "max") -> Floats:
    """The signal of every row at every internal exit, turned so that lower is safer.

    Of sentences it is that of their words, by `over`. (rows, exits - 1)
    """
    columns = [
        lower_is_safer(signal, signal(trace.view(number))) for number in range(trace.exits - 1)
    ]
    if trace.sentence is not None:
        columns = [sentence_signal(column, trace.sentence, over) for column in columns]
    return np.stack(columns, axis=1) if columns else np.empty((trace.sentences, 0))


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
