"""Making a controller from a calibrated curve: which thresholds it may use, and where it starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de3bert.errors import De3Error, UsageError
from de3bert.exits.curve import Curve, curve
from de3bert.exits.family import Family
from de3bert.exits.keeping import NO_BANDIT, KeepRule
from de3bert.exits.points import Target
from de3bert.exits.policy import Policy
from de3bert.exits.rules import Threshold
from de3bert.exits.trace import Trace

__all__ = ["FLOOR", "check_keep", "kept_policy"]

FLOOR = 0.9  # agreement with full depth on calibration rows, unless another floor is asked for
KNOTS = 33
DIGITS = 6


def check_keep(families: Sequence[Family]) -> None:
    """UsageError for families that no controller can move along."""
    for family in families:
        if family.kind == "bandit":
            raise UsageError(NO_BANDIT)
        if family.signal is None:
            raise UsageError(
                f"`{family}` has no threshold that could be moved to keep a speed. Use a signal, "
                "such as `entropy` or `edr`."
            )


def kept_policy(trace: Trace, policy: Policy, target: Target) -> Policy:
    """A controller that keeps the target's ratio of layers, from where `policy` stands.

    Args:
        trace: whose curve it moves along; labels are not read.
        policy: a threshold that gives the ratio on this trace.

    Raises:
        De3Error: the ratio lies below the floor, or outside the thresholds, that were asked for.
    """
    rule = policy.rule
    if not isinstance(rule, Threshold):
        raise UsageError(f"`{policy}` has no threshold that could be moved to keep a speed.")
    family = Family("threshold", rule.signal, rule.count)
    points = curve(trace.self_labelled(), family)
    allowed = _allowed(points, target)
    mean = trace.base / target.value
    layers = points.layers_mean[allowed]
    if not layers.size or not layers.min() <= mean <= layers.max():
        raise _refusal(points, allowed, target, mean)
    along = _knots(points, allowed, mean)
    return Policy(KeepRule(rule.signal, mean=round(mean, DIGITS), along=along, count=rule.count))


def _allowed(points: Curve, target: Target) -> np.ndarray:
    """The points that the controller may visit, as a mask."""
    if target.within is not None:
        low, high = sorted(target.within)
        return (points.thresholds >= low) & (points.thresholds <= high)
    floor = FLOOR if target.floor is None else target.floor
    below = np.flatnonzero(points.score < floor - 1e-12)  # agreement: the trace labels itself
    last = int(below[0]) if below.size else len(points)
    return np.arange(len(points)) < last


def _knots(points: Curve, allowed: np.ndarray, mean: float) -> tuple[tuple[float, float], ...]:
    """Points evenly spaced in layers, with both ends and the start among them."""
    layers, thresholds = points.layers_mean[allowed], points.thresholds[allowed]
    wanted = np.unique(np.append(np.linspace(layers.max(), layers.min(), KNOTS - 1), mean))[::-1]
    found: dict[float, float] = {}
    for each in wanted.tolist():
        index = int(np.searchsorted(-layers, -each - 1e-9))
        chosen = float(thresholds[min(index, len(thresholds) - 1)])
        found.setdefault(round(each, DIGITS), float(f"{chosen:.{DIGITS}g}"))
    return tuple(found.items())


def _refusal(points: Curve, allowed: np.ndarray, target: Target, mean: float) -> De3Error:
    if target.within is not None:
        bound = f"the thresholds {target.within[0]:g} to {target.within[1]:g}"
    else:
        bound = f"the floor of agreement {FLOOR if target.floor is None else target.floor:g}"
    speeds = points.layer_speedup[allowed]
    reach = "no point of the curve" if not speeds.size else (
        f"a layer speed-up of {speeds.min():.4g} to {speeds.max():.4g}"
    )  # fmt: skip
    there = np.flatnonzero(points.layers_mean <= mean + 1e-9)
    agrees = f" Its agreement there is {points.score[there[0]]:.4g}." if there.size else ""
    return De3Error(
        f"layers={target.value:g} cannot be kept: {bound} allow {reach} on these rows.{agrees} "
        "Ask for less speed, or for another floor: `layers=4.0 keep agree=0.9`."
    )
