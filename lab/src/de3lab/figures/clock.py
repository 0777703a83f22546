"""Accuracy against measured milliseconds: curves of exits among models of one speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from de3bert.figures.style import COLOURS, figure

__all__ = ["ClockCurve", "ClockDot", "draw_clock"]

BLACK, GREY = 6, 7  # of `COLOURS`; before them stand those of curves


@dataclass(frozen=True)
class ClockCurve:
    """A model with exits.

    Attributes:
        points: (milliseconds, accuracy) of each.
        number: curves of one number have one colour.
        filled: whether its markers are; hollow ones are for 8-bit weights.
    """

    label: str
    points: tuple[tuple[float, float], ...]
    number: int
    filled: bool = True


@dataclass(frozen=True)
class ClockDot:
    """A model of one speed; those that learned from a teacher are grey."""

    label: str
    ms: float
    accuracy: float
    filled: bool = True
    student: bool = False


def draw_clock(
    path: str | Path, curves: Sequence[ClockCurve], dots: Sequence[ClockDot], title: str = ""
) -> None:
    """Writes the figure: accuracies in percent over milliseconds."""
    with figure(path, 7.2, 4.6) as axes:
        for curve in curves:
            points = sorted(curve.points)
            colour = COLOURS[curve.number]
            axes.plot(
                [ms for ms, _ in points], [100 * accuracy for _, accuracy in points], "-o",
                lw=1.5, ms=4, color=colour, label=curve.label,
                markerfacecolor=colour if curve.filled else "white",
            )  # fmt: skip
        for dot in dots:
            colour = COLOURS[GREY if dot.student else BLACK]
            spot = (dot.ms, 100 * dot.accuracy)
            face = colour if dot.filled else "white"
            axes.plot(*spot, "s", ms=6, color=colour, markerfacecolor=face)
            axes.annotate(
                dot.label, spot, (5, -10), textcoords="offset points", fontsize=7.5, color=colour
            )
        axes.set_xlabel("milliseconds per text, mean, one text at a time")
        axes.set_ylabel("accuracy in percent")
        axes.set_title(title)
        axes.legend(fontsize=8, loc="lower right")
