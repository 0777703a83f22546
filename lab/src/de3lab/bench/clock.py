"""Models compared at equal milliseconds: curves of exits against models of one speed.

Everything here is arithmetic on rows that `studies/clock.py` measured: of a model with exits one
row for each point, of a model without exits one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from de3lab.bench.bar import Bar

__all__ = ["BASELINE", "STUDENTS", "Timed", "bars", "means_over_seeds", "score_at"]

FULL = "full"
STUDENTS = ("pkd", "pd", "theseus")
BASELINE = {"fp32": "ort-fused", "int8": "ort-fused-int8"}
GAINS = {
    "sst2": {"layers-6": 0.010, "layers-4": 0.040},
    "qnli": {"layers-6": 0.005, "layers-4": 0.020},
}
LOSS = 0.005  # of accuracy, for the bar on time
SHARE = 0.38  # of the fused graph's time
EFFICIENCY = 0.92
SPEEDS = ("2x", "3x")


@dataclass(frozen=True)
class Timed:
    """One contender of a seed, or the mean of several seeds.

    Attributes:
        model: the training, such as `full+fitted` or `layers-6`.
        way: the runtime, or for a model with exits its point.
        layers: mean layers executed.
        ms: mean milliseconds of a text alone, tokenising included.
        rate: texts per second at the best batch size.
    """

    model: str
    way: str
    precision: str
    layers: float
    accuracy: float
    ms: float
    rate: float

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Timed:
        return cls(**{field.name: row[field.name] for field in fields(cls)})

    @property
    def name(self) -> tuple[str, str, str]:
        return self.model, self.way, self.precision


def means_over_seeds(seeds: Sequence[Iterable[Timed]]) -> list[Timed]:
    """Contenders that every seed has, each with the means of its numbers."""
    tables = [{each.name: each for each in rows} for rows in seeds]
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    found = []
    for name in shared:
        same = [table[name] for table in tables]
        found.append(
            Timed(
                *name,
                layers=float(np.mean([each.layers for each in same])),
                accuracy=float(np.mean([each.accuracy for each in same])),
                ms=float(np.mean([each.ms for each in same])),
                rate=float(np.mean([each.rate for each in same])),
            )
        )
    return found


def score_at(points: Sequence[Timed], ms: float) -> float | None:
    """The accuracy of a curve at a mean time, linear between its points; None beyond them.

    Between two points lies what choosing between both at random would give.
    """
    ordered = sorted(points, key=lambda each: each.ms)
    if not ordered or not ordered[0].ms <= ms <= ordered[-1].ms:
        return None
    times, scores = ([getattr(each, name) for each in ordered] for name in ("ms", "accuracy"))
    return float(np.interp(ms, times, scores))


def bars(
    rows: Sequence[Timed], task: str, precision: str = "fp32", curve: str = "full+fitted"
) -> list[Bar]:
    """What exits promise at equal milliseconds, beside what they give.

    A bar whose contenders were not measured, or whose time lies beyond the curve, is left out.
    """
    fused = {each.model: each for each in rows if each.way == BASELINE[precision]}
    points = [each for each in rows if each.model == curve and each.precision == precision]
    found = []
    for model, gain in GAINS[task].items():
        if model in fused and (score := score_at(points, fused[model].ms)) is not None:
            name = f"points over {model} at its time, {precision}"
            found.append(Bar(name, 100 * (score - fused[model].accuracy), 100 * gain))
    best = max(
        (fused[name] for name in STUDENTS if name in fused),
        key=lambda each: each.accuracy,
        default=None,
    )
    if best is not None and (score := score_at(points, best.ms)) is not None:
        name = f"points over the best student ({best.model}), {precision}"
        found.append(Bar(name, 100 * (score - best.accuracy), 0.0))
    if FULL in fused:
        found += _of_full_depth(fused[FULL], points, precision, task)
    return found


def _of_full_depth(full: Timed, points: Sequence[Timed], precision: str, task: str) -> list[Bar]:
    close = [each.ms for each in points if each.accuracy >= full.accuracy - LOSS]
    found = []
    if close and task == "sst2":
        name = f"time within 0.5 points of full depth, {precision}"
        found.append(Bar(name, min(close) / full.ms, SHARE, at_least=False))
    for each in points:
        if each.way in SPEEDS:
            speedup = full.layers / each.layers
            name = f"efficiency at {each.way}, {precision}"
            found.append(Bar(name, full.ms / each.ms / speedup, EFFICIENCY))
    return found
