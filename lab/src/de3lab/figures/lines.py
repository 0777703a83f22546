"""Panels of lines: scores over speeds or settings, with bands, error bars and single points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from de3bert.figures.style import COLOURS, figure
from de3lab.figures.looks import looks_of

__all__ = ["Panel", "PlotLine", "draw_lines", "look"]

LINE_COLOURS = COLOURS[:6]  # without black and grey, which are left for single and best points
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
MARKERS = "osD^vPX*"
WIDTH, HEIGHT = 3.5, 2.5  # inches of a panel: the column of a page, so that nothing is shrunk
LEGEND_ROW = 0.17
SMALL = 7.5  # points
FAINT = 0.18


@dataclass(frozen=True)
class PlotLine:
    """One line of a panel. Lines of one label look alike in all panels and figures.

    Attributes:
        label: its name in the legend.
        x, y: the points, (points,) each; a y of None leaves a gap.
        low, high: the ends of an interval at each point, (points,); None for none.
        kind: "line" joins the points, with the interval as a band; "marked" also shows each point,
            with the interval as a bar; "points" shows them alone.
        colour: instead of its own.
        marker: instead of its own.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    kind: Literal["line", "marked", "points"] = "line"
    colour: str | None = None
    marker: str | None = None


@dataclass(frozen=True)
class Panel:
    """Lines on one pair of axes.

    Attributes:
        x_limits: the part of the x axis that is shown.
        zero: with a line at 0, for differences.
    """

    lines: Sequence[PlotLine]
    x_label: str
    y_label: str
    title: str = ""
    x_limits: tuple[float, float] | None = None
    zero: bool = False


def draw_lines(
    path: str | Path, panels: Sequence[Panel], *, title: str = "", height: float = HEIGHT
) -> None:
    """Writes the panels one below the other, with one legend for all.

    Args:
        height: inches of each panel.
    """
    labels = list(dict.fromkeys(line.label for panel in panels for line in panel.lines))
    looks = {label: seen.plotted() for label, seen in looks_of(labels).items()}
    beside = _legend_columns(labels)
    tall = height * len(panels) + LEGEND_ROW * math.ceil(len(labels) / beside)
    with figure(path, WIDTH, tall, rows=len(panels)) as drawn:
        places = list(drawn) if len(panels) > 1 else [drawn]
        for axes, panel in zip(places, panels, strict=True):
            _draw_panel(axes, panel, looks)
        whole = places[0].figure
        if title:
            whole.suptitle(title, fontsize=9)
        handles = _handles(places)
        whole.legend(
            [handles[label] for label in labels], labels, loc="outside lower center",
            ncols=beside, fontsize=SMALL, handlelength=2.6, columnspacing=1.2,
        )  # fmt: skip


def look(number: int) -> dict[str, Any]:
    """Colour, dash and marker all change from line to line, for eyes and for grey prints."""
    return {
        "color": LINE_COLOURS[number % len(LINE_COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],  # a colour comes back with another one
        "marker": MARKERS[number % len(MARKERS)],
    }


def _legend_columns(labels: Sequence[str]) -> int:
    """As many columns as fit, by the longest label: a letter is about 0.055 inches wide."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(int(WIDTH / (0.055 * longest + 0.5)), len(labels)))


def _handles(places: Sequence[Any]) -> dict[str, Any]:
    """Label -> what the legend shows of it; of several panels the first."""
    found: dict[str, Any] = {}
    for axes in places:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return found


def _draw_panel(axes: Any, panel: Panel, looks: dict[str, dict[str, Any]]) -> None:
    if panel.zero:
        axes.axhline(0, color="0.35", lw=0.8, zorder=1)
    for line in panel.lines:
        own = dict(looks[line.label])
        own["color"] = line.colour or own["color"]
        own["marker"] = line.marker or own["marker"]
        _draw_line(axes, line, own)
    axes.set_xlabel(panel.x_label, fontsize=8.5)
    axes.set_ylabel(panel.y_label, fontsize=8.5)
    axes.tick_params(labelsize=8)
    if panel.title:
        axes.set_title(panel.title, fontsize=9)
    if panel.x_limits is not None:
        _limit(axes, panel)


def _draw_line(axes: Any, line: PlotLine, own: dict[str, Any]) -> None:
    x, y, low, high = (_numbers(values) for values in (line.x, line.y, line.low, line.high))
    shown = {"label": line.label, "zorder": 3, **own}
    if line.kind == "points":
        axes.plot(x, y, ms=5, **{**shown, "linestyle": ""})
    elif line.kind == "marked" and low and high:
        ends = [[v - a for v, a in zip(y, low, strict=True)],
                [b - v for v, b in zip(y, high, strict=True)]]  # fmt: skip
        axes.errorbar(x, y, yerr=ends, ms=4, lw=1.3, capsize=2.5, elinewidth=0.9, **shown)
    elif line.kind == "marked":
        axes.plot(x, y, ms=4, lw=1.3, **shown)
    else:
        axes.plot(x, y, lw=1.4, **{**shown, "marker": ""})
        if low and high:
            axes.fill_between(x, low, high, color=own["color"], alpha=FAINT, lw=0, zorder=2)


def _numbers(values: Sequence[float | None] | None) -> list[float]:
    return [math.nan if value is None else float(value) for value in values or ()]


def _limit(axes: Any, panel: Panel) -> None:
    """Shows a part of the x axis, with the y axis fitted to what is in that part."""
    assert panel.x_limits is not None
    low, high = panel.x_limits
    seen = [
        value
        for line in panel.lines
        for values in (line.y, line.low or (), line.high or ())
        for at, value in zip(line.x, values, strict=False)
        if value is not None and low <= at <= high
    ]
    seen += [0.0] if panel.zero else []
    axes.set_xlim(low, high)
    if seen:
        room = 0.06 * (max(seen) - min(seen) or 1.0)
        axes.set_ylim(min(seen) - room, max(seen) + room)
