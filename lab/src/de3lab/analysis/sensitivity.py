"""Score over a setting (lambda, alpha) at several layer speed-ups: measured, and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.curve import curve
from de3bert.exits.signals.parse import Signal
from de3bert.exits.trace import Trace
from de3lab.figures.over_values import ValueLine, draw_over_values

__all__ = ["SAME", "draw_sensitivity", "scores_at"]

SAME = 1e-12  # scores nearer than this are one and the same


def scores_at(
    trace: Trace, weights: Sequence[float], speeds: Sequence[float], metric: str
) -> NDArray[np.float64]:
    """The score of `edr(lambda=w)` at each layer speed-up, (weights, speeds)."""
    curves = [curve(trace, Signal("edr", (("lambda", weight),)), metric) for weight in weights]
    return np.asarray([[each.at(speed) for speed in speeds] for each in curves])


def draw_sensitivity(
    path: Path, numbers: Mapping[str, Any], setting: str, *, x_label: str, title: str
) -> None:
    """Writes a line per layer speed-up over the values of the setting, the best of each marked.

    Args:
        numbers: with rows, metric and `by_speed`, each with speed, scores and `best_{setting}`.
        setting: the key of its values in the scores.
    """
    values = [score[setting] for score in numbers["by_speed"][0]["scores"]]
    draw_over_values(
        path,
        [f"{value:g}" for value in values],
        [_line(each, values.index(each[f"best_{setting}"])) for each in numbers["by_speed"]],
        x_label=x_label,
        y_label=f"{numbers['metric']} (n = {numbers['rows']})",
        title=title,
        legend="layer speed-up",
    )


def _line(seen: Mapping[str, Any], highest: int) -> ValueLine:
    means = [score["mean"] for score in seen["scores"]]
    best = highest if max(means) - min(means) > SAME else None  # where all are equal none is best
    spreads = [score["sd"] or 0.0 for score in seen["scores"]]
    low, high = (
        [mean + side * sd for mean, sd in zip(means, spreads, strict=True)] for side in (-1, 1)
    )
    label = f"{seen['speed']:g}x"
    if not any(spreads):
        return ValueLine(label, means, best=best)
    return ValueLine(label, means, low, high, best)
