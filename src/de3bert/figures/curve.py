"""Score against layer speed-up: the exact curves, the fixed-depth exits and the oracle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from de3bert.exits.trade_off import NamedCurve, TradeOff
from de3bert.figures.style import COLOURS, figure

__all__ = ["draw_report"]

GREY = "#666666"
RULES = ("edr", "entropy", "patience", "energy", "certainty", "bandit")  # in the colours' order
DASHES = ("-", "--", ":", "-.")
KIND = re.compile(r"\w+")  # `edr(lambda=1.0)` and `entropy x 2` begin with their kind
CROWDED = 0.3  # names of points nearer than this in speed would cover one another


class Timed(Protocol):
    """A policy that was run for real."""

    @property
    def score(self) -> float: ...

    @property
    def measured_ms(self) -> float: ...


def draw_report(
    path: str | Path,
    report: TradeOff,
    *,
    points: Sequence[tuple[str, float, float]] = (),
    timed: Sequence[Timed] = (),
    time: bool = False,
    title: str = "",
) -> None:
    """Writes the figure.

    Args:
        points: operating points as (name, layer speed-up, score).
        timed: policies that were run for real, drawn with `time`.
        time: against predicted milliseconds instead of layers; the curves must have them.
    """
    first = report.lines[0].curve
    curves = [line for line in report.lines if line.curve.family not in ("layers", "oracle")]
    with figure(path, 6.4, 4.2) as axes:
        for line, look in zip(curves, _looks([each.curve.family for each in curves]), strict=True):
            axes.plot(_x(line, time), line.curve.score, label=line.label, lw=1.6, **look)
        for line in report.lines:
            if line.curve.family == "layers":
                _draw_layers(axes, line, _x(line, time))
            elif line.curve.family == "oracle":
                seen = line.curve
                label = f"{line.label} (bounds the score, not speed)"
                axes.plot(_x(line, time), seen.score, "*", color="black", label=label, ms=11)
        before, high = -1.0, False
        for name, x, y in sorted(points, key=lambda point: point[1]):
            axes.plot([x], [y], "o", color=COLOURS[0], ms=6, mfc="white", zorder=5)
            high = x - before < CROWDED and not high  # the second of two neighbours goes on top
            place = (5, 18 if high else 6)
            axes.annotate(name, (x, y), place, textcoords="offset points", fontsize=8)
            before = x
        if timed:
            spent, scores = [each.measured_ms for each in timed], [each.score for each in timed]
            axes.plot(spent, scores, "o", color=COLOURS[0], mfc="white", ms=6, label="measured")
        if time:
            axes.set_xlabel("predicted milliseconds per text, one at a time")
        else:
            axes.set_xlabel(f"layer speed-up ({first.base} layers / mean layers executed)")
        axes.set_ylabel(f"{report.metric} (n = {first.rows})")
        axes.set_title(title)
        axes.legend(loc="best")


def _looks(families: Sequence[str]) -> list[dict[str, Any]]:
    """A rule has one colour in all figures; a second of its kind has another dash."""
    kinds = [KIND.match(family)[0] for family in families]  # type: ignore[index]  # never empty
    others = [name for name in dict.fromkeys(kinds) if name not in RULES]
    known = {name: number for number, name in enumerate([*RULES, *others])}
    return [
        {
            "color": COLOURS[known[kind] % len(COLOURS)],
            "linestyle": DASHES[kinds[:number].count(kind) % len(DASHES)],
        }
        for number, kind in enumerate(kinds)
    ]


def _x(line: NamedCurve, time: bool) -> Any:
    return line.curve.milliseconds if time else line.curve.layer_speedup


def _draw_layers(axes: Any, line: NamedCurve, places: Any) -> None:
    seen = line.curve
    axes.plot(places, seen.score, "s", color=GREY, label=line.label, ms=4.5)
    for depth, x, y in zip(seen.thresholds, places, seen.score, strict=True):
        place = {"textcoords": "offset points", "ha": "center", "fontsize": 7, "color": GREY}
        axes.annotate(f"{int(depth)}", (x, y), (0, -11), **place)
