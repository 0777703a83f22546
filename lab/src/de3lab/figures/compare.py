"""Methods side by side: score against speed, score at every exit, mean ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.figures.style import figure
from de3lab.figures.looks import Look, looks_of

__all__ = [
    "LABELLED",
    "Series",
    "draw_exit_scores",
    "draw_ranks",
    "draw_trade_offs",
    "tells_enough",
]

LABELLED = 6  # lines with a name in one figure; more cannot be told apart
FEWEST = 3  # points: one or two are read faster in a table
BOLD, PLAIN, THIN = 2.6, 1.6, 0.9
GREY, FAINT = "0.72", 0.16
LETTER = 0.024  # width of a letter in a panel of ranks, as a share of the panel


@dataclass(frozen=True)
class Series:
    """The points of a method: x, y, and the deviation of y over seeds where there are several."""

    x: Sequence[float]
    y: Sequence[float]
    sd: Sequence[float] | None = None


def tells_enough(found: Mapping[str, Series]) -> bool:
    """Whether there is a line of at least three points, or as many single ones."""
    longest = max((len(each.x) for each in found.values()), default=0)
    return longest >= FEWEST or sum(len(each.x) for each in found.values()) >= FEWEST


def draw_trade_offs(
    path: str | Path,
    found: Mapping[str, Series],
    *,
    labelled: Sequence[str],
    metric: str,
    title: str = "",
) -> None:
    """Writes score against layer speed-up.

    Args:
        found: method -> its curve, or the one point it has.
        labelled: those that are named, the first of them bold; the others are grey.
    """
    with figure(path, 7.6, 4.6) as axes:
        _draw_series(axes, found, labelled, marked=False)
        axes.set_xlabel("layer speed-up (layers of the full model / mean layers executed)")
        axes.set_ylabel(metric)
        axes.set_title(title)


def draw_exit_scores(
    path: str | Path,
    found: Mapping[str, Series],
    *,
    labelled: Sequence[str],
    metric: str,
    title: str = "",
) -> None:
    """Writes the score of every exit if all rows leave there; x are layers."""
    with figure(path, 7.6, 4.6) as axes:
        _draw_series(axes, found, labelled, marked=True)
        axes.set_xticks(sorted({layer for each in found.values() for layer in each.x}))
        axes.set_xlabel("exit layer")
        axes.set_ylabel(f"{metric} when all leave there")
        axes.set_title(title)


def _draw_series(
    axes: Any, found: Mapping[str, Series], labelled: Sequence[str], *, marked: bool
) -> None:
    """Grey lines first, then those with a name, their bands over seeds, and the legend."""
    looks = looks_of(found)
    named = [name for name in labelled if name in found]
    others = [name for name in found if name not in named]
    for number, name in enumerate(others):
        label = f"{len(others)} other{'s' if len(others) > 1 else ''}" if not number else None
        _draw_one(axes, found[name], {"color": GREY, "linestyle": "-"}, looks[name], marked,
                  label=label, lw=THIN, zorder=2)  # fmt: skip
    for name in reversed(named):
        each, look = found[name], looks[name]
        own = {"color": look.plotted()["color"], "linestyle": look.plotted()["linestyle"]}
        width = BOLD if name == labelled[0] else PLAIN
        _draw_one(axes, each, own, look, marked, label=name, lw=width, zorder=3)
        if each.sd is not None and len(each.x) > 1:
            both = list(zip(each.y, each.sd, strict=True))
            axes.fill_between(
                each.x, [y - sd for y, sd in both], [y + sd for y, sd in both],
                color=own["color"], alpha=FAINT, lw=0, zorder=2.5,
            )  # fmt: skip
    handles, labels = axes.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    order = [*named, *(label for label in labels if label not in named)]
    bands = any(found[name].sd is not None and len(found[name].x) > 1 for name in named)
    axes.legend(
        [known[name] for name in order], order, loc="center left", bbox_to_anchor=(1.01, 0.5),
        fontsize=9, handlelength=3.2, title="band: ± sd over seeds" if bands else None,
        title_fontsize=8,
    )  # fmt: skip


def _draw_one(
    axes: Any, each: Series, own: Mapping[str, Any], look: Look, marked: bool, **more: Any
) -> None:
    marker = look.plotted()["marker"] if marked or len(each.x) == 1 else ""
    line = own["linestyle"] if len(each.x) > 1 else ""
    axes.plot(each.x, each.y, color=own["color"], linestyle=line, marker=marker,
              ms=4.5 if len(each.x) > 1 else 7, **more)  # fmt: skip


def draw_ranks(
    path: str | Path, ranks: Mapping[str, Mapping[str, float]], *, chosen: str, title: str = ""
) -> None:
    """Writes mean ranks, a panel per speed, the best on top; `ranks`: speed -> method -> rank."""
    shown = {speed: found for speed, found in ranks.items() if found}
    tallest = max(len(found) for found in shown.values())
    with figure(path, max(3.6, 2.75 * len(shown)), 0.8 + 0.3 * tallest, columns=len(shown)) as axes:
        panels = [axes] if len(shown) == 1 else list(axes)
        for panel, (speed, found) in zip(panels, shown.items(), strict=True):
            _rank_panel(panel, found, chosen, tallest)
            panel.set_title(f"layer speed-up {speed}x", fontsize=9)
        panels[0].figure.suptitle(title)


def _rank_panel(axes: Any, found: Mapping[str, float], chosen: str, tallest: int) -> None:
    """A row per method, the best on top, named beside its dot: panels differ in their order."""
    ordered, looks = sorted(found, key=lambda name: found[name]), looks_of(found)
    for row, name in enumerate(ordered):
        look = looks[name].plotted()
        axes.plot([1, found[name]], [row, row], color="0.8", lw=1, zorder=1)
        axes.plot([found[name]], [row], ms=6, color=look["color"], marker=look["marker"], zorder=3)
        weight = "bold" if name == chosen else "normal"
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
