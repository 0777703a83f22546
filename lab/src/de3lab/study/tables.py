"""The tables of a study: a block per speed, methods by tasks, and what one must know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from de3bert.methods.poolings import pooling_words
from de3lab.documents import StudyResult
from de3lab.documents.study import Mean, PointMean, Score
from de3lab.study.side_tables import side_tables
from de3lab.tabular import Cell, Grid, tex_table

__all__ = [
    "MORE_STEPS",
    "blocks_of",
    "comparable",
    "doubts_of",
    "markdown",
    "notes_of",
    "tex",
    "uneven_steps",
]

AVERAGE = "AVG"
TIE = 1e-9
MORE_STEPS = "‡"


def blocks_of(document: StudyResult) -> list[Grid]:
    """The blocks of `study.json`: models of one speed first, then a block per speed."""
    tasks = [task.name for task in document.tasks if document.exits.get(task.name)]
    blocks = [_own_block(document, tasks)]
    blocks += [_speed_block(document, tasks, key) for key in document.scores]
    return [block for block in blocks if block.rows]


def markdown(document: StudyResult) -> str:
    """All tables as Markdown, with what one must know to read them."""
    lines = [f"# {document.title}", "", "\n\n".join(notes_of(document)), ""]
    tables = [*blocks_of(document), *side_tables(document)]
    return "\n".join([*lines, *(table.markdown() for table in tables)])


def tex(document: StudyResult) -> str:
    r"""`table` environments to \input; they need the package booktabs."""
    blocks = blocks_of(document)
    columns = max((block.columns for block in blocks), key=len, default=("method",))
    caption = " ".join([document.title + ".", *notes_of(document)])
    scores = tex_table(
        caption,
        columns,
        [(block.title, [_spread(block, row, columns) for row in block.rows]) for block in blocks],
        absent="--",
    )
    return "\n".join([scores, *(table.tex() for table in side_tables(document))])


def _spread(block: Grid, row: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    """A row of a block under the columns of the widest one."""
    by_name = dict(zip(block.columns, row, strict=True))
    return [by_name.get(name) for name in columns]


def notes_of(document: StudyResult) -> list[str]:
    """What one must know to read the scores, a sentence or two each."""
    progress, chosen = document.progress, document.chosen
    parts = [
        f"{progress.done} of {progress.of} trainings are finished.",
        "Scores in percent at equal layer speed-up (mean over seeds, ± sample deviation, of "
        "several metrics that of their mean): "
        + "; ".join(
            f"{task.name}: {'/'.join(task.metrics)} on {task.test}, {len(task.seeds)} seed(s)"
            for task in document.tasks
        )
        + ". [n = 1] is a mean over fewer seeds than others of its column have: it is not compared "
        "with them.",
        "Best of a column bold, second underlined, among means of the same seeds. "
        f"* {chosen} is above, † {chosen} is below: two-tailed paired t-test over shared seeds, "
        f"Holm-corrected over all methods and tasks of the speed ({AVERAGE}: over tasks, corrected "
        f"over methods), p < {document.significant_below:g}.",
    ]
    complete, listed = document.complete_tasks, [task.name for task in document.tasks]
    if complete and complete != listed:
        parts.append(
            f"{AVERAGE} is over the tasks that all have finished: {', '.join(complete)}, and the "
            "seeds that all share."
        )
    if any("oracle" in points for points in document.points.values()):
        parts.append(
            "The oracle, which reads the labels, is an upper bound on the score, not on speed: "
            "rows that no exit gets right go through all layers."
        )
    return [*parts, *doubts_of(document)]


def doubts_of(document: StudyResult) -> list[str]:
    """Rows that are not quite what the others are."""
    said = [
        f"{name} is withdrawn until it is trained again: {why}."
        for name, why in document.withdrawn.items()
    ]
    if uneven := uneven_steps(document):
        listed = ", ".join(f"{name} ({text})" for name, text in uneven.items())
        said.append(f"{MORE_STEPS} another number of optimizer steps than most: {listed}.")
    if document.older_scoring:
        said.append(
            f"{', '.join(document.older_scoring)}: scored before lambda 0, which is entropy, was "
            "among the weights tried."
        )
    if document.paper_grid:
        said.append("Lambda is chosen among the paper's weights, without 0 (entropy).")
    return [*said, *_what_exits_read(document)]


def _what_exits_read(document: StudyResult) -> list[str]:
    """What each method was built with, where that is not the same for all; and what it lacks."""
    shown = {name for found in document.exits.values() for name in found}
    built: dict[str, list[str]] = {}
    lacking = []
    for method in (each for each in document.methods if each.name in shown):
        poolings = method.built_poolings or (method.pooling or "what fits the backbone",)
        built.setdefault(" or ".join(map(pooling_words, poolings)), []).append(method.name)
        if method.declared_pooling is not None and method.pooling in poolings:
            lacking.append(f"{method.name} ({pooling_words(method.declared_pooling)})")
    usual = max(built, key=lambda words: len(built[words]), default="")
    others = [f"{words} in {', '.join(names)}" for words, names in built.items() if words != usual]
    said = [f"Exits read: {usual}; {'; '.join(others)}."] if others else []
    if lacking:
        said.append(f"Built without what they are declared with: {', '.join(lacking)}.")
    return said


def uneven_steps(document: StudyResult) -> dict[str, str]:
    """Method -> how many optimizer steps it had, where that is not what most had on the task."""
    found: dict[str, list[str]] = {}
    for task, methods in document.steps.items():
        if not methods:
            continue
        usual = Counter(each.steps for each in methods.values()).most_common(1)[0][0]
        for name, each in methods.items():
            if each.steps != usual:
                found.setdefault(name, []).append(f"{each.steps} instead of {usual} on {task}")
    return {name: ", ".join(parts) for name, parts in found.items()}


def _own_block(document: StudyResult, tasks: Sequence[str]) -> Grid:
    rows, metrics = [], _metrics(document)
    for method in (each.name for each in document.methods):
        points = {task: document.points[task].get(method) for task in tasks}
        if any(points.values()):
            cells = (_own_cell(point, metrics[task]) for task, point in points.items())
            rows.append((method, *cells))
    title = "Models of one speed (its layer speed-up in brackets)"
    return Grid(title, ("method", *(_head(task, metrics) for task in tasks)), tuple(rows))


def _own_cell(point: PointMean | None, metrics: Sequence[str]) -> Cell | None:
    if point is None:
        return None
    speed = f" ({point.layer_speedup:.2f}x)"
    return Cell(_scores(point, metrics), _deviation(point), speed)


def _speed_block(document: StudyResult, tasks: Sequence[str], key: str) -> Grid:
    scores, averages = document.scores[key], document.averages[key].methods
    ranked = [each.name for each in document.methods if each.ranked]
    shown = [each.name for each in document.methods if each.ranked or each.withdrawn]
    methods = [name for name in shown if any(name in scores[task] for task in tasks)]
    metrics = _metrics(document)
    columns: list[Mapping[str, Cell]] = []
    for task in tasks:
        alike = comparable({name: scores[task][name] for name in ranked if name in scores[task]})
        places = _places({name: scores[task][name].mean for name in alike})
        columns.append(
            {
                name: Cell(
                    _scores(found, metrics[task]),
                    _deviation(found),
                    after=_fewer(found, scores[task].values()),
                    place=places.get(name, 0),
                    mark=_mark(document, key, name, task),
                )
                for name, found in scores[task].items()
            }
        )
    places = _places(averages)
    columns.append(
        {
            name: Cell(_percent(mean), place=places.get(name, 0), mark=_mark(document, key, name))
            for name, mean in averages.items()
        }
    )
    uneven = uneven_steps(document)
    rows = tuple(
        (_row_name(document, name, uneven), *(column.get(name) for column in columns))
        for name in methods
    )
    heads = (_head(task, metrics) for task in tasks)
    return Grid(f"Layer speed-up {key}x", ("method", *heads, AVERAGE), rows)


def _row_name(document: StudyResult, method: str, uneven: Mapping[str, str]) -> str:
    withdrawn = " (withdrawn)" if method in document.withdrawn else ""
    return method + (MORE_STEPS if method in uneven else "") + withdrawn


def comparable(scores: Mapping[str, Score]) -> list[str]:
    """The methods of a column whose means may stand beside each other: over the same seeds.

    Of several sets of seeds the largest, and among those the one that most methods have. One method
    alone is not compared with anything.
    """
    if not scores:
        return []
    sets = Counter(frozenset(found.values) for found in scores.values())
    most = max(sets, key=lambda seeds: (len(seeds), sets[seeds], sorted(seeds)))
    alike = [name for name, found in scores.items() if frozenset(found.values) == most]
    return alike if len(alike) > 1 else []


def _fewer(found: Score, column: Iterable[Score]) -> str:
    """A mark on a mean over fewer seeds than the most of its column, or over other ones."""
    most = max((each.values for each in column), key=len)
    if found.values.keys() == most.keys():
        return ""
    if len(found.values) < len(most):
        return f" [n = {found.n}]"
    return f" [seeds {', '.join(found.values)}]"


def _metrics(document: StudyResult) -> dict[str, list[str]]:
    return {task.name: task.metrics for task in document.tasks}


def _head(task: str, metrics: Mapping[str, Sequence[str]]) -> str:
    """The name of a task, with its metrics where there are several."""
    return task if len(metrics[task]) == 1 else f"{task} ({'/'.join(metrics[task])})"


def _scores(found: Score | PointMean, metrics: Sequence[str]) -> str:
    """Every metric of the task; their mean, which has no name, only where they were not stored."""
    if not {*metrics} <= {*found.each}:
        return _percent(found.mean)
    return "/".join(_percent(found.each[metric]) for metric in metrics)


def _places(scores: Mapping[str, float]) -> dict[str, int]:
    """1 for the best, 2 for the second best value; equals share a place."""
    levels: list[float] = []
    for score in sorted(scores.values(), reverse=True):
        if not levels or score < levels[-1] - TIE:
            levels.append(score)
    return {
        name: place
        for place, level in enumerate(levels[:2], start=1)
        for name, score in scores.items()
        if abs(score - level) <= TIE
    }


def _mark(document: StudyResult, key: str, method: str, task: str | None = None) -> str:
    """`*` where the chosen method is surely above this one, `†` where it is surely below."""
    tests = document.tests[key].get(method)
    if tests is None or (task is not None and task not in tests.tasks):
        return ""
    test = tests.over_tasks if task is None else tests.tasks[task]
    if test.p_holm is None or test.p_holm >= document.significant_below or not test.difference:
        return ""
    return "*" if test.difference > 0 else "†"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _deviation(found: Mean) -> str:
    return "" if found.sd is None else _percent(found.sd)
