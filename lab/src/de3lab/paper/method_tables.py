"""Methods compared in a study: our scores beside the published ones, one metric to a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from de3lab.documents import StudyResult
from de3lab.documents.study import PointMean, Score
from de3lab.paper.item import Item
from de3lab.paper.published import METRICS
from de3lab.paper.settings import row_name
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import task_name
from de3lab.study.side_tables import speed_tables
from de3lab.study.tables import MORE_STEPS, doubts_of, uneven_steps
from de3lab.tabular import Grid

__all__ = ["method_tables"]

AVERAGE, AVG = "average", "AVG"
OURS, PAPER = " ours", " paper"
SHOWN = {"f1": "F1", "accuracy": "accuracy"}
Rows = Mapping[str, Mapping[str, Any]]  # method -> the paper's row


class Column(NamedTuple):
    """A task by one of the paper's metrics; `shared` where the paper has several for it."""

    task: str
    metric: str
    shared: bool

    @property
    def head(self) -> str:
        return task_name(self.task) + (f" {SHOWN[self.metric]}" if self.shared else "")


def method_tables(item: Item, stored: Stored) -> list[Grid]:
    """One table for each of the paper's speeds, the full model among the first."""
    assert item.training is not None
    document = stored.study(item.training.study)
    full = item.published.get("1", {})
    found = [
        _table(document, speed, {**full, **methods})
        for speed, methods in item.published.items()
        if speed != "1"
    ]
    return found if document is None else [*found, *speed_tables(document)]


def _table(document: StudyResult | None, speed: str, methods: Rows) -> Grid:
    columns = _columns(document, speed, methods)
    heads = [column.head + who for column in columns for who in (OURS, PAPER)]
    uneven = {} if document is None else uneven_steps(document)
    named = {
        name: row_name(document, name, row["name"]) + (MORE_STEPS if name in uneven else "")
        for name, row in methods.items()
    }
    rows = [_row(document, speed, m, named[m], columns, row) for m, row in methods.items()]
    more = _more(document, speed, methods)
    rows += [_row(document, speed, name, name, columns, {}) for name in more]
    whole = ("method", *heads, AVG + OURS, AVG + PAPER)
    return _without_empty(Grid(f"Layer speed-up {speed}x", whole, tuple(rows), ""), document)


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
    columns: Sequence[Column],
    row: Mapping[str, Any],
) -> tuple[Any, ...]:
    cells: list[str | None] = []
    for column in columns:
        cells += [_ours(document, speed, method, column), _theirs(row.get(column.task), column)]
    average = f"{row[AVERAGE]:.1f}" if AVERAGE in row else None
    tasks = list(dict.fromkeys(column.task for column in columns))
    return (shown, *cells, _mean(document, speed, method, tasks), average)


def _columns(document: StudyResult | None, speed: str, methods: Rows) -> list[Column]:
    """The paper's tasks and metrics, those that most methods are measured on first."""
    metrics: dict[str, set[str]] = {}
    for row in methods.values():
        for task, cell in row.items():
            if isinstance(cell, dict):
                metrics.setdefault(task, set()).update(cell)
    done = {
        task: 0 if document is None else sum(
            _seen(document, speed, name, task) is not None for name in methods
        )
        for task in metrics
    }  # fmt: skip
    return [
        Column(task, metric, len(metrics[task] & {*METRICS}) > 1)
        for task in sorted(metrics, key=lambda task: -done[task])
        for metric in METRICS
        if metric in metrics[task]
    ]


def _ours(document: StudyResult | None, speed: str, method: str, column: Column) -> str | None:
    seen = None if document is None else _seen(document, speed, method, column.task)
    if document is None or seen is None:
        return None
    metrics = next(each.metrics for each in document.tasks if each.name == column.task)
    value = seen.each.get(column.metric, seen.mean if metrics == [column.metric] else None)
    if value is None:
        return None
    # Deviations are of a task's score; of several metrics that is their mean.
    spread = "" if seen.sd is None or len(metrics) > 1 else f" ± {100 * seen.sd:.1f}"
    if seen.n < _most_seeds(document, column.task):  # not to be compared with means of more
        spread += f" [n = {seen.n}]"
    at = f" ({seen.layer_speedup:.2f}x)" if isinstance(seen, PointMean) else ""
    gone = " (withdrawn)" if method in document.withdrawn else ""
    return f"{100 * value:.1f}{spread}{at}{gone}"


def _seen(document: StudyResult, speed: str, method: str, task: str) -> Score | PointMean | None:
    """The score at a speed, or the only one of a model that has one speed."""
    found = document.scores.get(speed, {}).get(task, {}).get(method)
    if found is None and method == "full":
        return document.points.get(task, {}).get(method)
    return found


def _theirs(cell: Mapping[str, float] | None, column: Column) -> str | None:
    if cell is None or column.metric not in cell:
        return None
    return f"{cell[column.metric]:.1f}" + (f" ({cell['speed']:.2f}x)" if "speed" in cell else "")


def _mean(
    document: StudyResult | None, speed: str, method: str, tasks: Sequence[str]
) -> str | None:
    """The average over all tasks of the table; none as long as one is missing."""
    if document is None or method in document.withdrawn:
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
        if document.exits.get(task.name) and task.rows is not None:
            rows = task.rows.get(f"test-{task.test}")
            parts.append(
                f"{task_name(task.name)} on {task.test} ({rows} rows), "
                f"{_seeds(document, task.name)}"
            )
    note += "; ".join(parts) + "."
    note += f" Not measured here: {', '.join(missing)}." if missing else ""
    return " ".join([note, *doubts_of(document)])


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
