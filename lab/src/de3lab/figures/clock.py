"""Accuracy against measured milliseconds: a curve of exits among models of one speed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from de3bert.figures.style import COLOURS, figure
from de3lab.bench.clock import BASELINE, Timed

__all__ = ["draw_clock"]

EXITS = {"full+fitted": "exits on 12 layers", "layers-6+fitted": "exits on 6 layers"}
STATIC = {
    "full": "12 layers", "layers-6": "6 layers", "layers-4": "4 layers",
    "pkd": "PKD", "pd": "PD", "theseus": "Theseus",
}  # fmt: skip
STUDENTS = ("pkd", "pd", "theseus")
FILLED = {"fp32": True, "int8": False}


def draw_clock(path: str | Path, rows: Sequence[Timed], title: str = "") -> None:
    """Writes the figure: a line for each model with exits and precision, a dot for each other."""
    with figure(path, 7.2, 4.6) as axes:
        for number, (model, label) in enumerate(EXITS.items()):
            for precision in FILLED:
                points = [e for e in rows if e.model == model and e.precision == precision]
                points.sort(key=lambda each: each.ms)
                axes.plot(
                    [e.ms for e in points], [100 * e.accuracy for e in points], "-o", lw=1.5, ms=4,
                    color=COLOURS[number], label=f"{label}, {precision}" if points else None,
                    markerfacecolor=COLOURS[number] if FILLED[precision] else "white",
                )  # fmt: skip
        for precision, filled in FILLED.items():
            for each in (e for e in rows if e.way == BASELINE[precision] and e.model in STATIC):
                colour = COLOURS[7] if each.model in STUDENTS else COLOURS[6]
                axes.plot(
                    [each.ms], [100 * each.accuracy], "s", ms=6, color=colour,
                    markerfacecolor=colour if filled else "white",
                )  # fmt: skip
                text = STATIC[each.model] + ("" if filled else ", int8")
                axes.annotate(
                    text, (each.ms, 100 * each.accuracy), (5, -10), textcoords="offset points",
                    fontsize=7.5, color=colour,
                )  # fmt: skip
        axes.set_xlabel("milliseconds per text, mean, one text at a time")
        axes.set_ylabel("accuracy in percent")
        axes.set_title(title)
        axes.legend(fontsize=8, loc="lower right")
