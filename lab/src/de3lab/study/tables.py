"""The main table: a block per speed, methods by tasks, with the average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from de3lab.documents import StudyResult
from de3lab.documents.study import Mean, PointMean, Score
from de3lab.tabular import Cell, Grid, tex_table

__all__ = ["blocks_of", "markdown", "tex"]

AVERAGE = "AVG"
TIE = 1e-9


def blocks_of(document: StudyResult) -> list[Grid]:
    """The blocks of `study.json`: models of one speed first, then a block per speed."""
    tasks = [task.name for task in document.tasks if document.exits.get(task.name)]
    blocks = [_own_block(document, tasks)]
    blocks += [_speed_block(document, tasks, key) for key in document.scores]
    return [block for block in blocks if block.rows]


def markdown(document: StudyResult) -> str:
    """All blocks as Markdown tables, with what one must know to read them."""
    lines = [f"# {document.title}", "", *_notes(document), ""]
    return "\n".join([*lines, *(block.markdown() for block in blocks_of(document))])


def tex(document: StudyResult) -> str:
    r"""One `table` environment to \input; it needs the package booktabs."""
    blocks = blocks_of(document)
    columns = max((block.columns for block in blocks), key=len, default=("method",))
    caption = " ".join([document.title + ".", *_notes(document)])
    return tex_table(
        caption,
        columns,
        [(block.title, [_spread(block, row, columns) for row in block.rows]) for block in blocks],
        absent="--",
    )


def _spread(block: Grid, row: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    """A row of a block under the columns of the widest one."""
    by_name = dict(zip(block.columns, row, strict=True))
    return [by_name.get(name) for name in columns]


def _notes(document: StudyResult) -> list[str]:
    progress, chosen = document.progress, document.chosen
    parts = [
        f"{progress.done} of {progress.of} trainings are finished.",
        "Scores in percent at equal layer speed-up (mean over seeds, ± sample deviation): "
        + "; ".join(
            f"{task.name}: {'/'.join(task.metrics)} on {task.test}, {len(task.seeds)} seed(s)"
            for task in document.tasks
        )
        + ".",
        f"Best of a column bold, second underlined. * {chosen} is better, one-tailed paired "
        f"t-test over seeds, Holm-corrected over tasks ({AVERAGE}: over tasks), "
        f"p < {document.significant_below:g}.",
    ]
    complete, listed = document.complete_tasks, [task.name for task in document.tasks]
    if complete and complete != listed:
        parts.append(f"{AVERAGE} is over the tasks that all have finished: {', '.join(complete)}.")
    return parts


def _own_block(document: StudyResult, tasks: Sequence[str]) -> Grid:
    rows = []
    for method in (each.name for each in document.methods):
        points = [document.points[task].get(method) for task in tasks]
        if any(points):
            rows.append((method, *(_own_cell(point) for point in points)))
    title = "Models of one speed (its layer speed-up in brackets)"
    return Grid(title, ("method", *tasks), tuple(rows))


def _own_cell(point: PointMean | None) -> Cell | None:
    if point is None:
        return None
    speed = f" ({point.layer_speedup:.2f}x)"
    return Cell(_percent(point.mean), _deviation(point), speed)


def _speed_block(document: StudyResult, tasks: Sequence[str], key: str) -> Grid:
    scores, averages = document.scores[key], document.averages[key].methods
    ranked = [each.name for each in document.methods if each.ranked]
    methods = [name for name in ranked if any(name in scores[task] for task in tasks)]
    metrics = {task.name: task.metrics for task in document.tasks}
    columns: list[Mapping[str, Cell]] = []
    for task in tasks:
        places = _places({name: found.mean for name, found in scores[task].items()}, ranked)
        columns.append(
            {
                name: Cell(
                    _scores(found, metrics[task]),
                    _deviation(found),
                    place=places.get(name, 0),
                    starred=_is_worse(document, key, name, task),
                )
                for name, found in scores[task].items()
            }
        )
    places = _places(averages, ranked)
    columns.append(
        {
            name: Cell(
                _percent(mean), place=places.get(name, 0), starred=_is_worse(document, key, name)
            )
            for name, mean in averages.items()
        }
    )
    rows = tuple((name, *(column.get(name) for column in columns)) for name in methods)
    return Grid(f"Layer speed-up {key}x", ("method", *tasks, AVERAGE), rows)


def _scores(found: Score, metrics: Sequence[str]) -> str:
    return "/".join(_percent(found.each[metric]) for metric in metrics)


def _places(scores: Mapping[str, float], ranked: Sequence[str]) -> dict[str, int]:
    """1 for the best, 2 for the second best value; equals share a place."""
    known = {name: score for name, score in scores.items() if name in ranked}
    levels: list[float] = []
    for score in sorted(known.values(), reverse=True):
        if not levels or score < levels[-1] - TIE:
            levels.append(score)
    return {
        name: place
        for place, level in enumerate(levels[:2], start=1)
        for name, score in known.items()
        if abs(score - level) <= TIE
    }


def _is_worse(document: StudyResult, key: str, method: str, task: str | None = None) -> bool:
    tests = document.tests[key].get(method)
    if tests is None or (task is not None and task not in tests.tasks):
        return False
    p = tests.over_tasks.p if task is None else tests.tasks[task].p_holm
    return p is not None and p < document.significant_below


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _deviation(found: Mean) -> str:
    return "" if found.sd is None else _percent(found.sd)
