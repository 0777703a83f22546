"""Lines over the values of a setting or over layers, with error bars and the best points marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.figures.style import figure
from de3lab.figures.lines import look
from de3lab.figures.looks import looks_of

__all__ = ["ValueLine", "draw_over_values"]

WIDTH, HEIGHT = 3.5, 2.6  # inches: the column of a page, so that nothing is shrunk
LETTER, HANDLE, LEGEND_ROW = 0.055, 0.5, 0.17  # inches of a legend
BEST = "best"
LABEL, TICK, SMALL = 8.5, 8, 7.5  # points


@dataclass(frozen=True)
class ValueLine:
    """One line; all sequences have an entry per value, None where there is no number.

    Attributes:
        label: its name in the legend.
        y: the points.
        low, high: the ends of the bar at each point; empty for none.
        best: the place of the point to mark, from 0.
    """

    label: str
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    best: int | None = None


def draw_over_values(
    path: str | Path,
    values: Sequence[str],
    lines: Sequence[ValueLine],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    legend: str = "",
    zero: bool = False,
    methods: bool = False,
) -> None:
    """Writes the figure.

    Args:
        values: names at equal steps on the x axis: settings span orders of magnitude, and start
            at 0.
        legend: what the lines are, over the legend.
        zero: with a line at 0.
        methods: whether lines are methods, which look alike in all figures.
    """
    named = looks_of(line.label for line in lines)
    columns = _columns([line.label for line in lines])
    tall = HEIGHT + LEGEND_ROW * math.ceil((len(lines) + 1) / columns)
    with figure(path, WIDTH, tall) as axes:
        if zero:
            axes.axhline(0, color="0.35", lw=0.8, zorder=1)
        for number, line in enumerate(lines):
            _draw_line(axes, line, named[line.label].plotted() if methods else look(number))
        best = [(line.best, line.y[line.best]) for line in lines if line.best is not None]
        if best:
            axes.plot(*zip(*best, strict=True), "k*", ms=6, zorder=4, label=BEST)
        axes.set_xticks(range(len(values)), values)
        axes.tick_params(labelsize=TICK)
        axes.set_xlabel(x_label, fontsize=LABEL)
        axes.set_ylabel(y_label, fontsize=LABEL)
        axes.set_title(title, fontsize=LABEL)
        _legend(axes, [line.label for line in lines], legend, columns)


def _columns(labels: Sequence[str]) -> int:
    """As many columns of the legend as fit, by the longest label, and at most 3."""
    longest = max(len(label) for label in labels)
    return max(1, min(3, int(WIDTH / (LETTER * longest + HANDLE))))


def _legend(axes: Any, labels: Sequence[str], title: str, columns: int) -> None:
    """Below the axes, in the order of the lines: matplotlib would put error bars last."""
    known = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    shown = [label for label in (*labels, BEST) if label in known]
    axes.figure.legend(
        [known[label] for label in shown], shown, loc="outside lower center", ncols=columns,
        title=title, fontsize=SMALL, title_fontsize=SMALL, handlelength=2.6, columnspacing=1.2,
    )  # fmt: skip


def _draw_line(axes: Any, line: ValueLine, own: dict[str, Any]) -> None:
    known = [place for place, value in enumerate(line.y) if value is not None]
    y = [line.y[place] for place in known]
    bars = None
    if line.low and line.high:
        bars = [
            [_gap(line.y[place], line.low[place]) for place in known],
            [_gap(line.high[place], line.y[place]) for place in known],
        ]
    axes.errorbar(known, y, bars, ms=4, lw=1.3, capsize=2.5, elinewidth=0.9, zorder=2.5,
                  label=line.label, **own)  # fmt: skip


def _gap(upper: float | None, lower: float | None) -> float:
    return 0.0 if upper is None or lower is None else upper - lower
