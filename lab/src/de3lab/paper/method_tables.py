"""Methods compared in a study: our scores beside the published ones, and who is above whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from de3lab.documents import StudyResult
from de3lab.documents.study import PointMean, Score
from de3lab.paper.item import Item
from de3lab.paper.published import METRICS
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import task_name
from de3lab.tabular import Grid

__all__ = ["method_tables"]

AVERAGE, AVG = "average", "AVG"
OURS, PAPER = " ours", " paper"


def method_tables(item: Item, stored: Stored) -> list[Grid]:
    """One table for each of the paper's speeds, the full model among the first."""
    assert item.training is not None
    document = stored.study(item.training.study)
    full = item.published.get("1", {})
    return [
        _table(document, speed, {**full, **methods})
        for speed, methods in item.published.items()
        if speed != "1"
    ]


def _table(
    document: StudyResult | None, speed: str, methods: Mapping[str, Mapping[str, Any]]
) -> Grid:
    tasks = _tasks(document, methods)
    heads = [task_name(t) + who for t in tasks for who in (OURS, PAPER)]
    rows = [
        _row(document, speed, name, f"{row['name']} ({name})", tasks, row)
        for name, row in methods.items()
    ]
    more = _more(document, speed, methods)
    rows += [_row(document, speed, name, name, tasks, {}) for name in more]
    columns = ("method", *heads, AVG + OURS, AVG + PAPER)
    return _without_empty(Grid(f"Layer speed-up {speed}x", columns, tuple(rows), ""), document)


def _more(document: StudyResult | None, speed: str, known: Mapping[str, Any]) -> list[str]:
    """Methods of ours that the paper's table lacks and that have a score here."""
    if document is None:
        return []
    return [
        each.name
        for each in document.methods
        if each.ranked
        and each.name not in known
        and any(each.name in found for found in document.scores.get(speed, {}).values())
    ]


def _without_empty(table: Grid, document: StudyResult | None) -> Grid:
    """The table without columns of ours that have nothing; its note names their tasks."""
    ours = [number for number, head in enumerate(table.columns) if head.endswith(OURS)]
    empty = [number for number in ours if all(row[number] is None for row in table.rows)]
    kept = [number for number in range(len(table.columns)) if number not in empty]
    heads = tuple(table.columns[number] for number in kept)
    rows = tuple(tuple(row[number] for number in kept) for row in table.rows)
    missing = [table.columns[number].removesuffix(OURS) for number in empty]
    return Grid(
        table.title, heads, rows, _note(document, [task for task in missing if task != AVG])
    )


def _row(
    document: StudyResult | None,
    speed: str,
    method: str,
    shown: str,
    tasks: Sequence[str],
    row: Mapping[str, Any],
) -> tuple[Any, ...]:
    cells: list[str | None] = []
    for task in tasks:
        cells += [_ours(document, speed, method, task), _theirs(row.get(task))]
    average = f"{row[AVERAGE]:.1f}" if AVERAGE in row else None
    return (shown, *cells, _mean(document, speed, method, tasks), average)


def _tasks(document: StudyResult | None, methods: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The paper's tasks, those that are measured here first."""
    named = (
        task for row in methods.values() for task, cell in row.items() if isinstance(cell, dict)
    )
    known = dict.fromkeys(named)
    measured = [task for task in known if _is_measured(document, task)]
    return list(dict.fromkeys([*measured, *known]))


def _is_measured(document: StudyResult | None, task: str) -> bool:
    return document is not None and bool(document.exits.get(task))


def _ours(document: StudyResult | None, speed: str, method: str, task: str) -> str | None:
    seen = None if document is None else _seen(document, speed, method, task)
    if document is None or seen is None:
        return None
    metrics = next(each.metrics for each in document.tasks if each.name == task)
    each = seen.each if isinstance(seen, Score) else {metrics[0]: seen.mean}
    text = "/".join(f"{100 * each[metric]:.1f}" for metric in metrics if metric in each)
    spread = "" if seen.sd is None else f" ± {100 * seen.sd:.1f}"
    if seen.n < _most_seeds(document, task):  # not to be compared with means of more
        spread += f" [n = {seen.n}]"
    at = f" ({seen.layer_speedup:.2f}x)" if isinstance(seen, PointMean) else ""
    return text + spread + at


def _seen(document: StudyResult, speed: str, method: str, task: str) -> Score | PointMean | None:
    """The score at a speed, or the only one of a model that has one speed."""
    found = document.scores.get(speed, {}).get(task, {}).get(method)
    if found is None and method == "full":
        return document.points.get(task, {}).get(method)
    return found


def _theirs(cell: Mapping[str, float] | None) -> str | None:
    if cell is None:
        return None
    text = "/".join(f"{cell[metric]:.1f}" for metric in METRICS if metric in cell)
    return text + (f" ({cell['speed']:.2f}x)" if "speed" in cell else "")


def _mean(
    document: StudyResult | None, speed: str, method: str, tasks: Sequence[str]
) -> str | None:
    """The average over all tasks of the table; none as long as one is missing."""
    if document is None:
        return None
    seen = [_seen(document, speed, method, task) for task in tasks]
    known = [each.mean for each in seen if each is not None]
    return f"{100 * sum(known) / len(known):.1f}" if len(known) == len(tasks) else None


def _note(document: StudyResult | None, missing: Sequence[str]) -> str:
    note = "Percent; in brackets a layer speed-up that is not the table's. "
    if document is None:
        return note + "Nothing is measured here yet."
    parts = []
    for task in document.tasks:
        if task_name(task.name) not in missing and task.rows is not None:
            rows = task.rows.get(f"test-{task.test}")
            parts.append(
                f"{task_name(task.name)}: {'/'.join(task.metrics)} on "
                f"{task.test} ({rows} rows), {_seeds(document, task.name)}"
            )
    note += "; ".join(parts) + "."
    return note + (f" Not measured here: {', '.join(missing)}." if missing else "")


def _seeds(document: StudyResult, task: str) -> str:
    """How many seeds stand behind the scores: from the fewest to the most."""
    counts = _seed_counts(document, task)
    if not counts:
        return "no seed yet"
    low, high = min(counts), max(counts)
    if low == high:
        return "1 seed" if low == 1 else f"{low} seeds"
    return f"{high} seeds where no other number n stands"


def _most_seeds(document: StudyResult, task: str) -> int:
    return max(_seed_counts(document, task), default=0)


def _seed_counts(document: StudyResult, task: str) -> set[int]:
    counts = {seen.n for each in document.scores.values() for seen in each.get(task, {}).values()}
    return counts | {seen.n for seen in document.points.get(task, {}).values()}
