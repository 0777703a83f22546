"""Operations of each module and parameters of each part, on a log scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.figures.style import COLOURS, figure

__all__ = ["draw_costs"]

Bars = Sequence[tuple[str, Mapping[str, float]]]  # of each series: name, and value by row


def draw_costs(path: str | Path, numbers: Mapping[str, Any]) -> None:
    """Writes the figure; `numbers` as the analysis `costs` gives them.

    Of several models the one with most modules is drawn.
    """
    kind = max(numbers["kinds"], key=lambda kind: len(kind["flops"]["convention"]))
    operations: Bars = [
        ("as the paper counts", kind["flops"]["convention"]),
        ("all matrix products", kind["flops"]["counted"]),
    ]
    parameters: Bars = [("parameters", _parts(kind["parameters"]))]
    heights = [0.36 * len(_rows(operations)), 0.25 * len(_rows(parameters))]
    with figure(path, 4.6, 1.6 + sum(heights), rows=2) as panels:
        panels[0].get_gridspec().set_height_ratios(heights)
        _draw_bars(panels[0], operations)
        panels[0].set_xlabel(f"FLOPs, one text of {numbers['length']} tokens ({kind['label']})")
        _draw_bars(panels[1], parameters)
        panels[1].set_xlabel(f"parameters ({kind['label']})")


def _parts(found: Mapping[str, Any]) -> dict[str, float]:
    return {
        "backbone": found["backbone"],
        **found["parts"],
        "final head": found["final head"],
        "prototypes (stored)": found["prototypes"],
    }


def _rows(bars: Bars) -> list[str]:
    """All rows of all series that have something to show."""
    return list(
        dict.fromkeys(name for _, values in bars for name, value in values.items() if value)
    )


def _draw_bars(axes: Any, bars: Bars) -> None:
    """Groups of horizontal bars, the first group on top, each with its value."""
    rows = _rows(bars)
    height = 0.8 / len(bars)
    for number, (name, values) in enumerate(bars):
        places = [row + (number - (len(bars) - 1) / 2) * height for row in range(len(rows))]
        sizes = [values.get(row, 0) or float("nan") for row in rows]
        drawn = axes.barh(
            places, sizes, height * 0.92, label=name, hatch="//" if number else "",
            color=COLOURS[number], edgecolor="white", linewidth=0,
        )  # fmt: skip
        axes.bar_label(drawn, [_short(size) for size in sizes], padding=2, fontsize=9.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.margins(x=0.22)
    axes.grid(visible=False, axis="y")
    if len(bars) > 1:
        place = {"loc": "lower left", "bbox_to_anchor": (-0.35, 1.0), "ncols": 2}
        axes.legend(**place, columnspacing=1, handlelength=1.4, borderaxespad=0.2)


def _short(value: float) -> str:
    """Three digits that count, with K, M or G."""
    if value != value:  # no bar
        return ""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.0f}"
