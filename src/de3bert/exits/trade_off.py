"""The trade-off of one or more traces: threshold families against fixed depth and the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.exits.calibrate import curves_of, default_family
from de3bert.exits.cost_model import CostModel
from de3bert.exits.curve import Curve
from de3bert.exits.family import Family
from de3bert.exits.trace import Trace

__all__ = ["NamedCurve", "TradeOff", "default_families", "trade_off", "trade_off_of"]

STORED_POINTS = 200  # of each curve, enough to draw it again


@dataclass(frozen=True)
class NamedCurve:
    """A curve and its name."""

    label: str
    curve: Curve

    def score_at(self, speed: float) -> float | None:
        """The score at a layer speed-up, None where the curve does not reach."""
        reach = self.curve.layer_speedup
        if not reach[0] - 1e-9 <= speed <= reach[-1] + 1e-9:
            return None
        return self.curve.at(layer_speedup=speed)


@dataclass(frozen=True)
class TradeOff:
    """Curves that share a picture."""

    lines: tuple[NamedCurve, ...]  # every family, fixed depth and oracle last
    metric: str

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "curves": [
                {"label": line.label, **line.curve.to_json(max_points=STORED_POINTS)}
                for line in self.lines
            ],
        }


def default_families(trace: Trace) -> list[str]:
    """What to show when nothing was asked for: EDR or certainty where they are, and entropy."""
    own = default_family(trace)
    return ["entropy"] if own == "entropy" else [str(Family.parse(own)), "entropy"]


def trade_off_of(
    trace: Trace,
    families: Sequence[str] | None = None,
    metric: str = "accuracy",
    prefix: str = "",
    cost: CostModel | None = None,
) -> TradeOff:
    """The curves of one trace, with fixed depth and the oracle; with predicted times by `cost`."""
    wanted = [*(families or default_families(trace)), "layers", "oracle"]
    names = {"layers": "fixed depth"}
    found = curves_of(trace, [Family.parse(name) for name in wanted], metric, cost)
    labels = [prefix + names.get(name, name) for name in wanted]
    return TradeOff(tuple(map(NamedCurve, labels, found)), metric)


def trade_off(
    paths: Sequence[str | Path],
    families: Sequence[str] | None = None,
    metric: str = "accuracy",
    cost: CostModel | None = None,
) -> TradeOff:
    """The curves of trace files; with several, each label starts with the file's name."""
    lines: list[NamedCurve] = []
    for path in paths:
        prefix = f"{Path(path).stem}: " if len(paths) > 1 else ""
        lines.extend(trade_off_of(Trace.load(path), families, metric, prefix, cost).lines)
    return TradeOff(tuple(lines), metric)
