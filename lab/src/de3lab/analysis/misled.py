"""Rows that entropy lets go too early, with a wrong label, and EDR later, with the right one.

The two signals have different scales, so they are compared where both spend as many layers on the
whole data: at each of some layer speed-ups every rule has the threshold that gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits import Curve, Signal, Trace, curve
from de3bert.exits.replay import exit_indices

__all__ = ["Contest", "contest", "signals_of", "surest_mistake"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SPEEDS = 50  # that are tried, evenly spread in mean layers


@dataclass(frozen=True, eq=False)
class Contest:
    """Entropy against EDR at several layer speed-ups.

    Attributes:
        speeds: layer speed-ups, (speeds,).
        thresholds: of entropy and of EDR, (speeds, 2).
        leaves: the layer at which each row leaves by either, (speeds, rows, 2).
        misled: whether entropy is early and wrong and EDR late and right, (speeds, rows).
        doubt: the entropy at the exit that entropy takes, (speeds, rows).
    """

    speeds: Floats
    thresholds: Floats
    leaves: Integers
    misled: NDArray[np.bool_]
    doubt: Floats

    def best(self) -> int | None:
        """The row misled at most speeds; of several the one with the lowest entropy there."""
        often = self.misled.sum(axis=0)
        if not often.max(initial=0):
            return None
        lowest = np.where(self.misled, self.doubt, np.inf).min(axis=0)
        return int(np.lexsort((lowest, -often))[0])

    def at(self, row: int) -> dict[str, Any] | None:
        """What happens to a row in the middle of the speeds at which it is misled, as JSON."""
        where = np.flatnonzero(self.misled[:, row])
        if not where.size:
            return None
        middle = int(where[len(where) // 2])
        early, late = self.leaves[middle, row].tolist()
        local, fused = self.thresholds[middle].tolist()
        return {
            "layer_speedup": float(self.speeds[middle]),
            "speeds": len(where),
            "of_speeds": len(self.speeds),
            "entropy_tau": local,
            "edr_tau": fused,
            "entropy_layer": early,
            "edr_layer": late,
        }


def signals_of(trace: Trace, weight: float) -> tuple[Floats, Floats, Floats]:
    """Entropy, distance ratio and EDR of all rows at all exits but the last, (rows, exits - 1)."""
    edr = Signal("edr", (("lambda", weight),))
    views = [trace.view(index) for index in range(trace.exits - 1)]
    found = [
        np.stack([signal(view) for view in views], axis=1)
        for signal in (Signal("entropy"), Signal("distance_ratio"), edr)
    ]
    return found[0], found[1], found[2]


def contest(trace: Trace, weight: float) -> Contest:
    """Both rules at the layer speed-ups that both reach; needs labels and distances."""
    rules = [curve(trace, Signal("entropy")), curve(trace, Signal("edr", (("lambda", weight),)))]
    speeds = _speeds(rules)
    points = [[rule.index_at(speed) for rule in rules] for speed in speeds]
    index = np.array(
        [
            [exit_indices(trace, rule.policy(at)) for rule, at in zip(rules, pair, strict=True)]
            for pair in points
        ]
    )  # (speeds, 2, rows)
    rows = np.arange(trace.rows)
    early, late = index[:, 0], index[:, 1]
    # At the final exit nobody asks.
    doubt = np.pad(_entropies(trace), ((0, 0), (0, 1)), constant_values=np.inf)
    return Contest(
        speeds=speeds,
        thresholds=np.array(
            [[r.thresholds[at] for r, at in zip(rules, pair, strict=True)] for pair in points]
        ),
        leaves=np.asarray(trace.exit_layers, dtype=np.int64)[index].transpose(0, 2, 1),
        misled=(early < late) & ~trace.correct[rows, early] & trace.correct[rows, late],
        doubt=doubt[rows, early],
    )


def surest_mistake(trace: Trace) -> int | None:
    """The row that is wrong at some exit and right at a later one, with the lowest entropy there.

    None where no exit that comes later ever corrects one that is wrong.
    """
    # Right at this exit or at a later one: running "or" from the last exit backwards.
    later = np.logical_or.accumulate(trace.correct[:, ::-1], axis=1)[:, ::-1]
    mended = ~trace.correct[:, :-1] & later[:, 1:]
    if not mended.any():
        return None
    return int(np.where(mended, _entropies(trace), np.inf).min(axis=1).argmin())


def _entropies(trace: Trace) -> Floats:
    """Of all rows at all exits but the last, (rows, exits - 1)."""
    local = Signal("entropy")
    return np.stack([local(trace.view(number)) for number in range(trace.exits - 1)], axis=1)


def _speeds(rules: list[Curve]) -> Floats:
    """Evenly spread in mean layers between what both reach, without the two ends."""
    most = min(rule.layers_mean.max() for rule in rules)
    least = max(rule.layers_mean.min() for rule in rules)
    layers = np.linspace(most, least, SPEEDS + 2)[1:-1]
    return np.asarray(rules[0].base / layers)
