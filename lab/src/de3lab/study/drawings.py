"""The figures of a report, from `study.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from de3lab.documents import StudyResult
from de3lab.documents.study import TaskFacts
from de3lab.figures.compare import (
    LABELLED,
    Series,
    draw_exit_scores,
    draw_ranks,
    draw_trade_offs,
    tells_enough,
)

__all__ = ["draw_all", "labelled_methods", "trade_offs_of"]

KINDS = (".png", ".svg")
NAMES = ("curves-*", "exits-*", "ranks")  # of the figures here
FULL = "full"
FEWEST = 3  # methods that are worth a figure of ranks


def draw_all(place: Path, document: StudyResult) -> list[Path]:
    """Writes curves and exits of every task that has enough of them, and the ranks.

    One or two points are no figure. Figures of an earlier report that are no more are removed.

    Returns:
        What was written.
    """
    written = []
    for task in document.tasks:
        written += _task(place, document, task)
    ranks = {speed: found.methods for speed, found in document.ranks.items()}
    if max((len(found) for found in ranks.values()), default=0) >= FEWEST:
        for kind in KINDS:
            written.append(place / f"ranks{kind}")
            draw_ranks(written[-1], ranks, chosen=document.chosen, title=_rank_title(document))
    for path in (path for name in NAMES for kind in KINDS for path in place.glob(name + kind)):
        if path not in written:
            path.unlink()
    return written


def trade_offs_of(document: StudyResult, task: str) -> dict[str, Series]:
    """Method -> its curve over layer speed-ups, or the one point it has."""
    curves, points = document.curves.get(task, {}), document.points.get(task, {})
    lines = {name: Series(c.layer_speedup, c.score, c.sd) for name, c in curves.items()}
    return lines | {name: Series([p.layer_speedup], [p.mean]) for name, p in points.items()}


def labelled_methods(document: StudyResult, task: str) -> list[str]:
    """Those that a figure names: the chosen one, the full model, and the best of the others."""
    areas = document.areas.get(task, {})
    ranked = {each.name for each in document.methods if each.ranked}
    best = sorted(
        (name for name in areas if name in ranked),
        key=lambda name: (-areas[name].whole, -areas[name].mean),
    )
    first = [document.chosen, *([FULL] if FULL in document.points.get(task, {}) else [])]
    every = [*first, *best, *(each.name for each in document.methods if each.ranked)]
    return list(dict.fromkeys(every))[:LABELLED]


def _task(place: Path, document: StudyResult, task: TaskFacts) -> list[Path]:
    name = task.name
    rows = (task.rows or {}).get(f"test-{task.test}")
    given: dict[str, Any] = {
        "labelled": labelled_methods(document, name),
        "metric": task.metric,
        "title": f"{name}, {task.test} ({rows} rows)",
    }
    written = []
    for stem, draw, found in (
        ("curves", draw_trade_offs, trade_offs_of(document, name)),
        ("exits", draw_exit_scores, _exits(document, name)),
    ):
        if not tells_enough(found):
            continue
        for kind in KINDS:
            written.append(place / f"{stem}-{name}{kind}")
            draw(written[-1], found, **given)
    return written


def _exits(document: StudyResult, task: str) -> dict[str, Series]:
    """The exits of each training once: methods that share one have the same exits."""
    found, shown = document.exits.get(task, {}), dict[str, str]()
    for method in document.methods:
        if method.name in found:
            shown.setdefault(method.training, method.name)
    return {name: _exit_series(found[name], document.exit_sd.get(task, {}).get(name))
            for name in shown.values()}  # fmt: skip


def _exit_series(scores: Mapping[str, float], spread: Mapping[str, float] | None) -> Series:
    sd = None if spread is None else [spread[layer] for layer in scores]
    return Series([int(layer) for layer in scores], [*scores.values()], sd)


def _rank_title(document: StudyResult) -> str:
    tasks = ", ".join(document.complete_tasks)
    return f"mean rank over {tasks} (1 is best)"
