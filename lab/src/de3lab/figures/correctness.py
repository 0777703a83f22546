"""Two signals as judges of early answers: accuracy at thresholds above, ROC-AUC by layer below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.figures.style import figure
from de3lab.figures.looks import look_of

__all__ = ["Estimates", "draw_correctness"]

WIDTH = 0.38  # of a bar
STEEP = 4  # more places than this have their names turned, and no room for numbers
LOW = 15  # percent: a bar below has its number on top instead of inside
ALWAYS = 'always "right"'


@dataclass(frozen=True)
class Estimates:
    """What two signals reach at one place; from 0 to 1.

    Attributes:
        signals: of the one and the other signal.
        always: what always saying "right" reaches.
    """

    signals: tuple[float, float]
    always: float


def draw_correctness(
    path: str | Path,
    bars: Mapping[str, Estimates],
    lines: Mapping[int, tuple[float, float]],
    *,
    names: tuple[str, str],
    at: str,
    note: str,
) -> None:
    """Writes the figure.

    Args:
        bars: place -> accuracy of the estimates there.
        lines: layer -> ROC-AUC of each signal.
        names: of the two signals.
        at: what the places of the bars are.
        note: over the upper panel.
    """
    with figure(path, 4.5, 5.2, rows=2) as (above, below):
        _draw_bars(above, bars, names)
        above.set_xlabel(at)
        above.set_title(note, fontsize=10)
        for side, name in enumerate(names):
            look = {**look_of(name).plotted(), "ms": 4, "lw": 1.4}
            below.plot([*lines], [pair[side] for pair in lines.values()], label=name, **look)
        below.axhline(0.5, color="0.6", lw=1, ls=":")
        below.set_xticks([*lines])
        below.set_xlabel("layer (dotted: chance)")
        below.set_ylabel("ROC-AUC")
        known = dict(zip(*reversed(above.get_legend_handles_labels()), strict=True))
        shown = [*names, ALWAYS]
        above.figure.legend(
            [known[name] for name in shown], shown, loc="outside upper center", ncols=3,
            columnspacing=1.2, fontsize=9.5,
        )  # fmt: skip


def _draw_bars(axes: Any, bars: Mapping[str, Estimates], names: tuple[str, str]) -> None:
    for side, name in enumerate(names):
        places = [number + (side - 0.5) * WIDTH for number in range(len(bars))]
        heights = [100 * judged.signals[side] for judged in bars.values()]
        axes.bar(places, heights, WIDTH, color=look_of(name).plotted()["color"], label=name)
        if len(bars) <= STEEP:
            _name_bars(axes, places, heights)
    always = [100 * judged.always for judged in bars.values()]
    left = [number - WIDTH for number in range(len(bars))]
    right = [number + WIDTH for number in range(len(bars))]
    axes.hlines(always, left, right, color="black", lw=1.4, ls="--", label=ALWAYS)
    axes.set_xticks(range(len(bars)), [*bars], rotation=30 if len(bars) > STEEP else 0)
    axes.set_ylim(0, 108)
    axes.set_ylabel("right estimates (%)")
    axes.grid(visible=False, axis="x")


def _name_bars(axes: Any, places: Sequence[float], heights: Sequence[float]) -> None:
    """The height of each bar, inside it where it fits: lines may run above."""
    for place, height in zip(places, heights, strict=True):
        inside = height >= LOW
        axes.annotate(
            f"{height:.1f}", (place, height), (0, -3 if inside else 3), ha="center",
            va="top" if inside else "bottom", color="white" if inside else "black",
            textcoords="offset points", fontsize=9.5, weight="bold",
        )  # fmt: skip
