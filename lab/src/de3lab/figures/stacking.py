"""Accuracy against measured latency: exits, 8-bit weights and a runtime, alone and stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.figures.style import COLOURS, figure

__all__ = ["StackedSeries", "draw_latency"]


@dataclass(frozen=True)
class StackedSeries:
    """Rows that belong together: one runtime, joined by a line in the order given."""

    label: str
    names: tuple[str, ...]
    marker: str = "o"
    offset: tuple[int, int] = (4, 5)  # of the marks, in points: series often meet in one dot


def draw_latency(
    path: str | Path,
    rows: Sequence[Mapping[str, Any]],
    series: Sequence[StackedSeries],
    title: str = "",
) -> None:
    """Writes the figure.

    Args:
        rows: name, accuracy, `latency_ms` with p50, and what to write beside the dot (`mark`).
        series: which rows are drawn together.
    """
    known = {row["name"]: row for row in rows}
    with figure(path, 7.2, 4.8) as axes:
        for number, each in enumerate(series):
            shown = [known[name] for name in each.names if name in known]
            spent = [row["latency_ms"]["p50"] for row in shown]
            scores = [row["accuracy"] for row in shown]
            style = {"color": COLOURS[number % len(COLOURS)], "marker": each.marker, "lw": 1.4}
            axes.plot(spent, scores, label=each.label, ms=6.5, **style)
            for row, x, y in zip(shown, spent, scores, strict=True):
                place = {"textcoords": "offset points", "fontsize": 7.5, "color": style["color"]}
                axes.annotate(str(row["mark"]), (x, y), each.offset, **place)
        axes.set_xscale("log")
        ticks = [1, 2, 3, 5, 10, 20, 30, 50]
        low, high = axes.get_xlim()
        axes.set_xticks([tick for tick in ticks if low <= tick <= high])
        axes.set_xticklabels([str(tick) for tick in ticks if low <= tick <= high])
        axes.minorticks_off()
        axes.set_xlabel("milliseconds per text, median, one text at a time (log scale)")
        axes.set_ylabel("accuracy")
        axes.set_title(title)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize=8)
