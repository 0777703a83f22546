"""Calibration: find the policy that meets a target, and record what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from de3bert.errors import De3Error, UsageError
from de3bert.exits.cost import exit_histogram, layer_speedup, layers_mean
from de3bert.exits.curve import Curve, curve
from de3bert.exits.family import Family
from de3bert.exits.metrics import score, score_interval
from de3bert.exits.points import OperatingPoint, Target
from de3bert.exits.policy import Policy
from de3bert.exits.replay import replay
from de3bert.exits.rules import Full
from de3bert.exits.signal import Signal
from de3bert.exits.trace import Trace

__all__ = ["LAMBDA_GRID", "WIDE_LAMBDA_GRID", "calibrate", "measure"]

LAMBDA_GRID = (0.667, 1.0, 1.5, 2.0, 3.0)  # the grid of the paper
WIDE_LAMBDA_GRID = (0.0, 0.25, 0.5, 0.667, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)

ROUNDING = 1e-9  # scores are sums of shares; equal ones may differ in the last bits


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
    def policy(self) -> Policy:
        return self.curve.policy(self.index)

    @property
    def tie_break(self) -> tuple[float, float]:
        """Among equals prefer lambda nearest to 1 (the plain harmonic mean), then the smaller."""
        signal = self.policy.signal
        weight = dict(signal.params if signal else ()).get("lambda", 1.0)
        return -abs(weight - 1.0), -weight


def calibrate(
    trace: Trace,
    target: str | Target,
    *,
    name: str,
    family: str | None = None,
    lambdas: Sequence[float] = LAMBDA_GRID,
    metric: str = "accuracy",
) -> OperatingPoint:
    """The policy that meets `target` on this trace.

    - `layers=r`: on each curve the first point at least r times as fast in layers; of these the
      best score.
    - `drop=x`, `accuracy=a`: the fastest point that still scores full - x, or a.

    Ties go to the better score, then to the faster point, then to lambda nearest to 1, then to the
    smaller lambda. Thresholds fit the data they were chosen on a little too well: use a calibration
    split, and report scores on another.

    Args:
        trace: with labels.
        target: `layers=2.0`, `drop=0.01`, `accuracy=0.9` (in units of `metric`) or `full`.
        name: the name of the operating point.
        family: which policies to consider, such as `entropy` or `patience`; `edr` means all
            `lambdas`. By default `edr` if the trace has distances, else `entropy`.
        lambdas: the weights tried for `edr`.
        metric: accuracy, f1, macro_f1 or matthews.

    Raises:
        De3Error: no policy reaches the target; the message names the nearest one.
    """
    target = Target.parse(target) if isinstance(target, str) else target
    if target.kind == "full":
        policy = Policy(Full())
    else:
        curves = [curve(trace, member, metric) for member in _families(trace, family, lambdas)]
        policy = _choose(curves, target, _full_score(trace, metric)).policy
    return OperatingPoint(name, policy, str(target), measure(trace, policy, metric))


def measure(trace: Trace, policy: Policy, metric: str = "accuracy") -> dict[str, Any]:
    """What a policy gives on a labelled trace, in plain JSON values."""
    answer = replay(trace, policy)
    labels, classes = trace.known_labels, trace.classes
    histogram = exit_histogram(answer.exit_layers, trace.exit_layers)
    return {
        "rows": trace.rows,
        "metric": metric,
        "score": score(metric, labels, answer.labels, classes),
        "score_interval": list(score_interval(metric, labels, answer.labels, classes)),
        "full_score": _full_score(trace, metric),
        "layers_mean": layers_mean(answer.exit_layers),
        "layer_speedup": layer_speedup(answer.exit_layers, trace.depth),
        "exit_histogram": {str(layer): count for layer, count in histogram.items()},
        "data": trace.info.get("data"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _full_score(trace: Trace, metric: str) -> float:
    return score(metric, trace.known_labels, trace.predictions[:, -1], trace.classes)


def _families(trace: Trace, text: str | None, lambdas: Sequence[float]) -> list[Family]:
    if text is None:
        text = "entropy" if trace.distances is None else "edr"
    family = Family.parse(text)
    if family.kind == "oracle":
        raise UsageError("`oracle` needs the labels of what it predicts. Choose another family.")
    if family.signal is None or family.signal.name != "edr" or "(" in text:
        return [family]
    if not lambdas:
        raise UsageError("`edr` needs at least one lambda to try, got none.")
    weighted = [Signal("edr", (("lambda", weight),)) for weight in lambdas]
    return [Family("threshold", signal, family.count) for signal in weighted]


def _choose(curves: Sequence[Curve], target: Target, full: float) -> Candidate:
    if target.kind == "layers":
        return _best_at(curves, target.value)
    goal = target.value if target.kind == "accuracy" else full - target.value
    return _fastest_with(curves, goal, target)


def _best_at(curves: Sequence[Curve], ratio: float) -> Candidate:
    """The best scoring of each curve's first point that is fast enough."""
    fastest = [Candidate(each, len(each) - 1) for each in curves]
    reach = [each for each in fastest if each.layer_speedup >= ratio - ROUNDING]
    if not reach:
        nearest = max(fastest, key=lambda each: (each.layer_speedup, each.score, each.tie_break))
        raise De3Error(
            f"No policy here is {ratio:g} times as fast in layers. The fastest is "
            f"`{nearest.policy}`, with a layer speed-up of {nearest.layer_speedup:.4g}."
        )
    firsts = [Candidate(each.curve, each.curve.index_at(ratio)) for each in reach]
    return max(firsts, key=lambda each: (each.score, each.layer_speedup, each.tie_break))


def _fastest_with(curves: Sequence[Curve], goal: float, target: Target) -> Candidate:
    """The fastest point of all curves whose score reaches the goal."""
    highest = max(float(each.score.max()) for each in curves)
    reachable = min(goal, highest)
    found = []
    for each in curves:
        enough = np.flatnonzero(each.score >= reachable - ROUNDING)
        if enough.size:
            found.append(Candidate(each, int(enough[-1])))
    best = max(found, key=lambda each: (each.layer_speedup, each.score, each.tie_break))
    if highest >= goal - ROUNDING:
        return best
    raise De3Error(
        f"No policy here meets {target}: it would take {best.curve.metric} {goal:.4g}. The best is "
        f"{best.score:.4g}, by `{best.policy}` at a layer speed-up of {best.layer_speedup:.4g}."
    )
