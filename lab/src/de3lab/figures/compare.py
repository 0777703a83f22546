"""Methods side by side: score against speed, score at every exit, mean ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.figures.style import COLOURS, figure

__all__ = ["Look", "draw_exit_scores", "draw_ranks", "draw_trade_offs", "looks"]

DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
MARKERS = "osD^vPX*<>ph"
BOLD, PLAIN = 2.6, 1.4
LETTER = 0.024  # width of a letter in a panel of ranks, as a share of the panel
Points = tuple[Sequence[float], Sequence[float]]  # x, y

Look = dict[str, Any]


def looks(methods: Sequence[str], chosen: str) -> dict[str, Look]:
    """Colour, dash and marker of each method; no two share all three. The chosen one is bold."""
    styles = {}
    ordered = [chosen, *(name for name in methods if name != chosen)]
    for number, name in enumerate(ordered):
        styles[name] = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
            "marker": MARKERS[number % len(MARKERS)],
            "linewidth": BOLD if name == chosen else PLAIN,
            "zorder": 4 if name == chosen else 3,
        }
    return styles


def draw_trade_offs(
    path: str | Path,
    curves: Mapping[str, Points],
    points: Mapping[str, tuple[float, float]],
    styles: Mapping[str, Look],
    *,
    metric: str,
    title: str = "",
) -> None:
    """Writes score against layer speed-up.

    Args:
        curves: method -> layer speed-ups and scores.
        points: method -> the one speed-up and score it has.
    """
    with figure(path, 7.6, 4.6) as axes:
        for name, (x, y) in curves.items():
            axes.plot(x, y, label=name, **{**styles[name], "marker": ""})
        for name, (at, score) in points.items():
            axes.plot([at], [score], label=name, ms=7, **{**styles[name], "linestyle": ""})
        axes.set_xlabel("layer speed-up (layers of the full model / mean layers executed)")
        axes.set_ylabel(metric)
        axes.set_title(title)
        _legend_outside(axes)


def draw_exit_scores(
    path: str | Path,
    exits: Mapping[str, Mapping[int, float]],
    styles: Mapping[str, Look],
    *,
    metric: str,
    title: str = "",
) -> None:
    """Writes the score of every exit if all rows leave there; `exits`: method -> layer -> score."""
    with figure(path, 7.6, 4.6) as axes:
        for name, scores in exits.items():
            axes.plot([*scores], [*scores.values()], label=name, ms=4.5, **styles[name])
        axes.set_xticks(sorted({layer for scores in exits.values() for layer in scores}))
        axes.set_xlabel("exit layer")
        axes.set_ylabel(f"{metric} when all leave there")
        axes.set_title(title)
        _legend_outside(axes)


def draw_ranks(
    path: str | Path,
    ranks: Mapping[str, Mapping[str, float]],
    styles: Mapping[str, Look],
    *,
    title: str = "",
) -> None:
    """Writes mean ranks, a panel per speed, the best on top; `ranks`: speed -> method -> rank."""
    shown = {speed: found for speed, found in ranks.items() if found}
    tallest = max(len(found) for found in shown.values())
    with figure(path, max(3.6, 2.75 * len(shown)), 0.8 + 0.3 * tallest, columns=len(shown)) as axes:
        panels = [axes] if len(shown) == 1 else list(axes)
        for panel, (speed, found) in zip(panels, shown.items(), strict=True):
            _rank_panel(panel, found, styles, tallest)
            panel.set_title(f"layer speed-up {speed}x", fontsize=9)
        panels[0].figure.suptitle(title)


def _rank_panel(
    axes: Any, found: Mapping[str, float], styles: Mapping[str, Look], tallest: int
) -> None:
    """A row per method, the best on top, named beside its dot: panels differ in their order."""
    ordered = sorted(found, key=lambda name: found[name])
    for row, name in enumerate(ordered):
        look = {k: v for k, v in styles[name].items() if k != "linestyle"}
        axes.plot([1, found[name]], [row, row], color="0.8", lw=1, zorder=1)
        axes.plot([found[name]], [row], ms=6, **look)
        weight = "bold" if look["linewidth"] == BOLD else "normal"
        place = {"textcoords": "offset points", "fontsize": 7.5, "weight": weight, "va": "center"}
        beyond = found[name] + len(name) * LETTER * tallest > tallest  # it would leave the panel
        left = beyond and found[name] > (1 + tallest) / 2
        axes.annotate(name, (found[name], row), (-6 if left else 6, 5.5),
                      ha="right" if left else "left", **place)  # fmt: skip
    axes.set_ylim(tallest - 0.5, -0.9)
    axes.set_xlim(0.7, tallest + 0.3)
    axes.set_yticks([])
    axes.set_xlabel("mean rank")
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _legend_outside(axes: Any) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, handlelength=3.2)
