"""Measured time and operations against executed layers, all as shares of full depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.figures.style import COLOURS, figure

__all__ = ["draw_speed"]


def draw_speed(path: str | Path, numbers: Mapping[str, Any]) -> None:
    """Writes the figure; `numbers` as the analysis `speed` gives them.

    100 % is the threshold that runs most layers, here and in the paper.
    """
    with figure(path, 4.6, 3.9) as axes:
        axes.plot([0, 100], [0, 100], color="0.6", lw=1, label="as much less time as layers")
        ours, paper = numbers["thresholds"], numbers["paper"]["thresholds"]
        looks: Sequence[tuple[Any, str, str, str, str, Any]] = (
            (ours, "flops", "FLOPs, here", "s", COLOURS[2], ":"),
            (ours, "seconds", "time, here", "o", COLOURS[0], "-"),
            (paper, "seconds", "time, paper", "^", COLOURS[1], "--"),
        )
        for rows, key, name, marker, colour, line in looks:
            x, y = _shares(rows, "layers"), _shares(rows, key)
            axes.plot(
                *_ordered(x, y), color=colour, marker=marker, linestyle=line, ms=4.5, lw=1.2,
                label=name,
            )  # fmt: skip
        axes.set_xlim(0, 103)
        axes.set_ylim(0, None)
        axes.set_xlabel(f"executed layers, % of full depth (n = {numbers['rows']})")
        axes.set_ylabel("% of full depth")
        axes.figure.legend(loc="outside lower center", ncols=2, columnspacing=1.2)


def _shares(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    whole = max(rows, key=lambda row: row["layers"])[key]
    return [100 * row[key] / whole for row in rows]


def _ordered(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    pairs = sorted(zip(x, y, strict=True))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
