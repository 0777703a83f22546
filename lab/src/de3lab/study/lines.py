"""Curves of one family scored by one or several metrics, read at a speed and never beyond reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from de3bert.exits.curve import Curve, curve
from de3bert.exits.family import Family
from de3bert.exits.trace import Trace

__all__ = ["AREA", "SAME_SPEED", "ScoreLine", "lines_of", "speed_grid", "speed_key"]

SAME_SPEED = 0.01  # a model of one speed counts at those that are its own within 1 %
AREA = (1.5, 4.0)
GRID = 48  # points of a stored curve, besides the study's speeds
BEYOND = 1.5  # how far stored curves go on behind the fastest of these
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ScoreLine:
    """The curves of one family on one trace, by metric, and their mean."""

    mean: Curve
    each: Mapping[str, Curve]

    @classmethod
    def of(cls, trace: Trace, family: Family, metrics: Sequence[str]) -> ScoreLine:
        # Points and layers are the same whatever the metric, so scores are averaged point by point.
        each = {metric: curve(trace, family, metric) for metric in metrics}
        together = np.mean([one.score for one in each.values()], axis=0)
        mean = replace(each[metrics[0]], metric="+".join(metrics), score=together)
        return cls(mean, each)

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and the highest layer speed-up."""
        return float(self.mean.layer_speedup[0]), float(self.mean.layer_speedup[-1])

    @property
    def is_point(self) -> bool:
        """A model with a single exit, or the oracle."""
        return len(self.mean) == 1

    def reaches(self, speed: float) -> bool:
        low, high = self.reach
        if self.is_point:
            return abs(low / speed - 1) <= SAME_SPEED
        return low - ROUNDING <= speed <= high + ROUNDING

    def at(self, speed: float, metric: str | None = None) -> float:
        """The mean score, or one metric, at a speed within reach."""
        line = self.mean if metric is None else self.each[metric]
        return float(line.score[0]) if self.is_point else line.at(speed)

    def seen(self, speed: float) -> dict[str, Any] | None:
        """Mean and single scores at a speed, None out of reach."""
        if not self.reaches(speed):
            return None
        return {"score": self.at(speed), "each": {m: self.at(speed, m) for m in self.each}}

    def span(self) -> tuple[float, float]:
        """The part of `AREA` that is within reach; empty when the first is not the smaller."""
        return max(AREA[0], self.reach[0]), min(AREA[1], self.reach[1])


def lines_of(
    trace: Trace, families: Sequence[Family], metrics: Sequence[str]
) -> dict[str, ScoreLine]:
    return {str(family): ScoreLine.of(trace, family, metrics) for family in families}


def speed_grid(speeds: Sequence[float]) -> list[float]:
    """Where stored curves are read: evenly in layers from full depth on, and at the study's speeds.

    The same for all methods and seeds, so that curves can be averaged point by point.
    """
    shares = np.linspace(1.0, 1.0 / (BEYOND * max(speeds)), GRID)
    return sorted({round(float(1.0 / share), 6) for share in shares} | {*speeds})


def speed_key(speed: float) -> str:
    return f"{speed:g}"
