"""Choosing among the points of curves the one that meets a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error
from de3bert.exits.curve import Curve
from de3bert.exits.points import Target
from de3bert.exits.policy import Policy
from de3bert.exits.signals.parse import Signal

__all__ = ["Candidate", "choose", "fast_enough", "fastest", "tie_break"]

ROUNDING = 1e-9  # scores are sums of shares; equal ones may differ in the last bits
DIGITS = 9  # of a millisecond; sums in another order differ behind them


@dataclass(frozen=True)
class Candidate:
    """One point of one curve."""

    curve: Curve
    index: int

    @property
    def score(self) -> float:
        return float(self.curve.score[self.index])

    @property
    def layer_speedup(self) -> float:
        return float(self.curve.layer_speedup[self.index])

    @property
    def milliseconds(self) -> float:
        """Mean predicted time per text; only on curves that have it."""
        assert self.curve.milliseconds is not None
        return float(self.curve.milliseconds[self.index])

    @property
    def speed(self) -> float:
        """Higher is faster: by predicted time where there is one, else by layers."""
        return float(_speed(self.curve)[self.index])

    @property
    def policy(self) -> Policy:
        return self.curve.policy(self.index)

    @property
    def tie_break(self) -> tuple[float, float]:
        return tie_break(self.policy.signal)


def tie_break(signal: Signal | None) -> tuple[float, float]:
    """Among equals prefer lambda nearest to 1 (the plain harmonic mean), then the smaller."""
    weight = float(dict(signal.params if signal else ()).get("lambda", 1.0))
    return -abs(weight - 1.0), -weight


def choose(
    curves: Sequence[Curve], target: Target, full_score: float, full_ms: float = 0.0
) -> Candidate:
    """The point that meets the target, or a De3Error that names the nearest.

    Args:
        full_score: of the full model, for `drop`.
        full_ms: mean time of the full model, for `speedup`; the curves of a time target must
            have milliseconds.
    """
    if target.kind == "layers":
        firsts = fast_enough(curves, target, full_ms)
        return max(firsts, key=lambda each: (each.score, each.layer_speedup, each.tie_break))
    if target.is_time:
        firsts = fast_enough(curves, target, full_ms)
        return max(firsts, key=lambda each: (each.score, each.speed, each.tie_break))
    # Agreement is the score where the final exit's answers are the labels.
    goal = full_score - target.value if target.kind == "drop" else target.value
    found = fastest(curves, goal)
    if found is not None:
        return found
    best = fastest(curves, max(float(each.score.max()) for each in curves))
    assert best is not None  # some point has the highest score
    raise De3Error(
        f"No policy here meets {target}: it would take {best.curve.metric} {goal:.4g}. The best is "
        f"{best.score:.4g}, by `{best.policy}` at a layer speed-up of {best.layer_speedup:.4g}."
    )


def fastest(curves: Sequence[Curve], goal: float) -> Candidate | None:
    """The fastest point of all curves whose score reaches the goal."""
    found = []
    for each in curves:
        enough = np.flatnonzero(each.score >= goal - ROUNDING)
        if enough.size:
            speed = _speed(each)[enough]
            found.append(Candidate(each, int(enough[speed == speed.max()][-1])))
    return max(found, key=lambda each: (each.speed, each.score, each.tie_break), default=None)


def fast_enough(curves: Sequence[Curve], target: Target, full_ms: float) -> list[Candidate]:
    """Each curve's first point that meets a target of layers or time; De3Error if none does."""
    if target.kind == "layers":
        return _fast_in_layers(curves, target.value)
    return _fast_in_time(curves, target, full_ms)


def _fast_in_layers(curves: Sequence[Curve], ratio: float) -> list[Candidate]:
    ends = [Candidate(each, len(each) - 1) for each in curves]
    reach = [each for each in ends if each.layer_speedup >= ratio - ROUNDING]
    if not reach:
        nearest = max(ends, key=lambda each: (each.layer_speedup, each.score, each.tie_break))
        raise De3Error(
            f"No policy here is {ratio:g} times as fast in layers. The fastest is "
            f"`{nearest.policy}`, with a layer speed-up of {nearest.layer_speedup:.4g}."
        )
    return [Candidate(each.curve, each.curve.index_at(ratio)) for each in reach]


def _fast_in_time(curves: Sequence[Curve], target: Target, full_ms: float) -> list[Candidate]:
    """By predicted time.

    The first along the curve runs the most layers. Time may rise again behind it, so every point
    is looked at and not the last one only.
    """
    limit = target.value if target.kind == "latency" else full_ms / target.value
    firsts = []
    for each in curves:
        enough = np.flatnonzero(-_speed(each) <= limit * (1 + ROUNDING))
        if enough.size:
            firsts.append(Candidate(each, int(enough[0])))
    if firsts:
        return firsts
    ends = [Candidate(each, int(_speed(each).argmax())) for each in curves]
    nearest = max(ends, key=lambda each: (each.speed, each.score, each.tie_break))
    raise De3Error(
        f"No policy here meets {target}: it would take {limit:.4g} ms per text. The fastest is "
        f"`{nearest.policy}`, predicted to take {nearest.milliseconds:.4g} ms, a time speed-up of "
        f"{full_ms / nearest.milliseconds:.4g}."
    )


def _speed(curve: Curve) -> NDArray[np.float64]:
    """What orders points by speed, higher is faster, (points,)."""
    if curve.milliseconds is None:
        return curve.layer_speedup
    return -np.round(curve.milliseconds, DIGITS)
