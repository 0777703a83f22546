"""The figures of a report, from `study.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from de3lab.documents import StudyResult
from de3lab.documents.study import TaskFacts
from de3lab.figures.compare import draw_exit_scores, draw_ranks, draw_trade_offs, looks

__all__ = ["draw_all"]

KINDS = (".png", ".svg")


def draw_all(place: Path, document: StudyResult) -> list[Path]:
    """Writes curves and exits of every task that has any, and the ranks; gives what was written."""
    styles = looks([method.name for method in document.methods], document.chosen)
    written = []
    for task in document.tasks:
        if document.exits[task.name]:
            written += _task(place, document, task, styles)
    ranks = {speed: found.methods for speed, found in document.ranks.items()}
    if any(ranks.values()):
        for kind in KINDS:
            written.append(place / f"ranks{kind}")
            draw_ranks(written[-1], ranks, styles, title=_rank_title(document))
    return written


def _task(
    place: Path, document: StudyResult, task: TaskFacts, styles: Mapping[str, Any]
) -> list[Path]:
    name, metric = task.name, task.metric
    rows = (task.rows or {})[f"test-{task.test}"]
    title = f"{name}, {task.test} ({rows} rows)"
    curves = {
        method: (curve.layer_speedup, curve.score)
        for method, curve in document.curves[name].items()
    }
    points = {
        method: (point.layer_speedup, point.mean) for method, point in document.points[name].items()
    }
    exits = {
        method: {int(layer): score for layer, score in found.items()}
        for method, found in _trainings(document, name).items()
    }
    written = []
    for kind in KINDS:
        written.append(place / f"curves-{name}{kind}")
        draw_trade_offs(written[-1], curves, points, styles, metric=metric, title=title)
        written.append(place / f"exits-{name}{kind}")
        draw_exit_scores(written[-1], exits, styles, metric=metric, title=title)
    return written


def _trainings(document: StudyResult, task: str) -> dict[str, Any]:
    """The exits of each training once: methods that share one have the same exits."""
    found = document.exits[task]
    shown: dict[str, str] = {}
    for method in document.methods:
        if method.name in found:
            shown.setdefault(method.training, method.name)
    return {method: found[method] for method in shown.values()}


def _rank_title(document: StudyResult) -> str:
    tasks = ", ".join(document.complete_tasks)
    return f"mean rank over {tasks} (1 is best)"
