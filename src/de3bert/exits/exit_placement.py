"""Which exits are worth having: every exit tested costs time, and some never pay for themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from de3bert.errors import UsageError
from de3bert.exits.calibrate import LAMBDA_GRID, curves_of, families_of, full_score, measure
from de3bert.exits.choose import choose, fastest
from de3bert.exits.cost_model import CostModel
from de3bert.exits.curve import Curve
from de3bert.exits.family import Family
from de3bert.exits.points import OperatingPoint, Target
from de3bert.exits.policy import Policy
from de3bert.exits.rules import Full
from de3bert.exits.subsets import Layers, Step, cheapest
from de3bert.exits.trace import Trace

__all__ = ["Placement", "place_exits"]

PLACED = "placed"  # of the operating point


@dataclass(frozen=True)
class Placement:
    """The exits to have, and how to use them.

    Attributes:
        exit_layers: the layers with an exit, the final one last.
        point: the policy for a model with just these exits, and what it was measured to give.
        predicted_ms: mean predicted time per text with them.
        all_exits_ms: the same with all exits and the best policy for those; None when the target
            is out of their reach.
        full_ms: the same for the full model with no exit tested.
        trail: what was dropped and added on the way from all exits, with the gain of each step.
    """

    exit_layers: tuple[int, ...]
    point: OperatingPoint
    predicted_ms: float
    all_exits_ms: float | None
    full_ms: float
    trail: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "exit_layers": list(self.exit_layers),
            "point": self.point.to_json(),
            "predicted_ms": self.predicted_ms,
            "all_exits_ms": self.all_exits_ms,
            "full_ms": self.full_ms,
            "trail": [asdict(step) for step in self.trail],
        }


def place_exits(
    trace: Trace,
    cost: CostModel,
    target: str | Target,
    *,
    family: str | Sequence[str] | None = None,
    lambdas: Sequence[float] = LAMBDA_GRID,
    metric: str = "accuracy",
    keep: Iterable[int] = (),
) -> Placement:
    """The subset of the exits with the least mean predicted time that meets the target.

    For every subset tried, threshold and lambda are chosen again by exact sweeps. Up to seven exits
    all subsets are tried. With more, exits are dropped one by one, always the one without which
    the time is least, until that gains nothing; then dropped ones are added back while that helps.
    An exit that costs nothing on these rows stays. When no exit pays, the answer is the full model.

    Like every choice it fits its data a little too well: score the result on other rows.

    Args:
        trace: of a model with all exits that are to be considered, with labels.
        cost: what things take on the machine that will run it.
        target: `accuracy=0.9` or `drop=1%` (below the full model), in units of `metric`.
        family: which policies to consider, as for `calibrate`.
        lambdas: the weights tried for `edr`.
        metric: accuracy, f1, macro_f1 or matthews.
        keep: layers whose exits stay in any case.

    Raises:
        De3Error: no subset meets the target; the message names the nearest policy on all exits.
    """
    target = Target.parse(target) if isinstance(target, str) else target
    if target.kind not in ("accuracy", "drop"):
        raise UsageError(f"Exits are placed for `accuracy=` or `drop=`, not for {target}.")
    prices = Prices(trace, cost, target, families_of(trace, family, lambdas), metric)
    kept = {trace.exit_layers[number] for number in trace.exit_numbers(keep)}
    every = trace.exit_layers[:-1]
    free = tuple(layer for layer in every if layer not in kept)
    internal, trail = cheapest(every, free, prices)
    part, policy = trace.only(internal), prices.policy(internal)
    return Placement(
        exit_layers=part.exit_layers,
        point=OperatingPoint(PLACED, policy, str(target), measure(part, policy, metric, cost)),
        predicted_ms=prices(internal),
        all_exits_ms=prices(every) if math.isfinite(prices(every)) else None,
        full_ms=float(cost.full(trace).mean()),
        trail=trail,
    )


class Prices:
    """The least predicted time of each subset of the exits, worked out when first asked for."""

    def __init__(
        self, trace: Trace, cost: CostModel, target: Target, families: list[Family], metric: str
    ) -> None:
        self.trace, self.cost, self.target = trace, cost, target
        self.families, self.metric = families, metric
        self.full_score = full_score(trace, metric)
        # Not the curves they are points of: hundreds of those would fill the memory.
        self._found: dict[Layers, tuple[float, Policy | None]] = {}

    def __call__(self, internal: Layers) -> float:
        """Mean milliseconds per text, infinite when these exits cannot meet the target."""
        return self._best(internal)[0]

    def policy(self, internal: Layers) -> Policy:
        """The policy with that time, or a De3Error that names the nearest on all exits."""
        policy = self._best(internal)[1]
        if policy is None:
            every = self.trace.exit_layers[:-1]
            return choose(self._curves(every), self.target, self.full_score).policy
        return policy if internal else Policy(Full())

    def _best(self, internal: Layers) -> tuple[float, Policy | None]:
        if internal not in self._found:
            goal = self.target.value
            if self.target.kind == "drop":
                goal = self.full_score - goal
            found = fastest(self._curves(internal), goal)
            best = (math.inf, None) if found is None else (-found.speed, found.policy)
            self._found[internal] = best
        return self._found[internal]

    def _curves(self, internal: Layers) -> list[Curve]:
        return curves_of(self.trace.only(internal), self.families, self.metric, self.cost)
