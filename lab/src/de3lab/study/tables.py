"""The main table: a block per speed, methods by tasks, with the average, as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from de3lab.tabular import tex_escaped

__all__ = ["Block", "Cell", "blocks_of", "markdown", "tex"]

AVERAGE = "AVG"
STAR = "*"
TIE = 1e-9


@dataclass(frozen=True)
class Cell:
    """One number of the table; `place` is 1 for the best of its column and 2 for the second."""

    text: str
    deviation: str = ""
    speed: str = ""  # where it is not the block's
    place: int = 0
    worse: bool = False  # than the chosen method, significantly


@dataclass(frozen=True)
class Block:
    """Methods at one speed: `rows` has a cell (or None) per column for every method."""

    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Cell | None, ...]]


def blocks_of(document: Mapping[str, Any]) -> list[Block]:
    """The blocks of `study.json`: models of one speed first, then a block per speed."""
    tasks = [task["name"] for task in document["tasks"] if _has_scores(document, task["name"])]
    blocks = [_own_block(document, tasks)]
    blocks += [_speed_block(document, tasks, key) for key in document["scores"]]
    return [block for block in blocks if block.rows]


def markdown(document: Mapping[str, Any]) -> str:
    """All blocks as Markdown tables, with what one must know to read them."""
    lines = [f"# {document['title']}", "", *_notes(document), ""]
    for block in blocks_of(document):
        lines += [f"## {block.title}", "", _md_row(["method", *block.columns])]
        lines.append("|---|" + "---:|" * len(block.columns))
        for method, cells in block.rows.items():
            lines.append(_md_row([method, *(_md_cell(cell) for cell in cells)]))
        lines.append("")
    return "\n".join(lines)


def tex(document: Mapping[str, Any]) -> str:
    r"""One `table` environment to \input; it needs the package booktabs."""
    blocks = blocks_of(document)
    columns = max((block.columns for block in blocks), key=len, default=())
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{tex_escaped(' '.join([document['title'] + '.', *_notes(document)]))}}}",
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        _tex_row(["method", *(tex_escaped(name) for name in columns)]),
    ]
    for block in blocks:
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{{tex_escaped(block.title)}}} \\")
        for method, cells in block.rows.items():
            by_name = dict(zip(block.columns, cells, strict=True))
            found = [_tex_cell(by_name.get(name)) for name in columns]
            lines.append(_tex_row([tex_escaped(method), *found]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _notes(document: Mapping[str, Any]) -> list[str]:
    progress, chosen = document["progress"], document["chosen"]
    parts = [
        f"{progress['done']} of {progress['of']} trainings are finished.",
        "Scores in percent at equal layer speed-up (mean over seeds, ± sample deviation): "
        + "; ".join(
            f"{task['name']}: {'/'.join(task['metrics'])} on {task['test']}, "
            f"{len(task['seeds'])} seed(s)"
            for task in document["tasks"]
        )
        + ".",
        f"Best of a column bold, second underlined. {STAR} {chosen} is better, one-tailed paired "
        f"t-test over seeds, Holm-corrected over tasks ({AVERAGE}: over tasks), "
        f"p < {document['significant_below']:g}.",
    ]
    complete, listed = document["complete_tasks"], [task["name"] for task in document["tasks"]]
    if complete and complete != listed:
        parts.append(f"{AVERAGE} is over the tasks that all have finished: {', '.join(complete)}.")
    return parts


def _has_scores(document: Mapping[str, Any], task: str) -> bool:
    return bool(document["exits"].get(task))


def _own_block(document: Mapping[str, Any], tasks: Sequence[str]) -> Block:
    rows = {}
    for method in (each["name"] for each in document["methods"]):
        points = [document["points"][task].get(method) for task in tasks]
        if any(points):
            rows[method] = tuple(_own_cell(point) for point in points)
    return Block("Models of one speed (its layer speed-up in brackets)", tuple(tasks), rows)


def _own_cell(point: Mapping[str, Any] | None) -> Cell | None:
    if point is None:
        return None
    speed = f" ({point['layer_speedup']:.2f}x)"
    return Cell(_percent(point["mean"]), _deviation(point), speed)


def _speed_block(document: Mapping[str, Any], tasks: Sequence[str], key: str) -> Block:
    scores, averages = document["scores"][key], document["averages"][key]["methods"]
    ranked = [each["name"] for each in document["methods"] if each["ranked"]]
    methods = [name for name in ranked if any(name in scores[task] for task in tasks)]
    metrics = {task["name"]: task["metrics"] for task in document["tasks"]}
    columns: list[Mapping[str, Cell]] = []
    for task in tasks:
        places = _places({name: found["mean"] for name, found in scores[task].items()}, ranked)
        columns.append(
            {
                name: Cell(
                    _scores(found, metrics[task]),
                    _deviation(found),
                    place=places.get(name, 0),
                    worse=_is_worse(document, key, name, task),
                )
                for name, found in scores[task].items()
            }
        )
    places = _places(averages, ranked)
    columns.append(
        {
            name: Cell(
                _percent(mean), place=places.get(name, 0), worse=_is_worse(document, key, name)
            )
            for name, mean in averages.items()
        }
    )
    rows = {name: tuple(column.get(name) for column in columns) for name in methods}
    return Block(f"Layer speed-up {key}x", (*tasks, AVERAGE), rows)


def _scores(found: Mapping[str, Any], metrics: Sequence[str]) -> str:
    return "/".join(_percent(found["each"][metric]) for metric in metrics)


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


def _is_worse(document: Mapping[str, Any], key: str, method: str, task: str | None = None) -> bool:
    tests = document["tests"][key].get(method)
    if tests is None:
        return False
    p = tests["over_tasks"]["p"] if task is None else tests["tasks"].get(task, {}).get("p_holm")
    return p is not None and p < document["significant_below"]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _deviation(found: Mapping[str, Any]) -> str:
    return "" if found["sd"] is None else _percent(found["sd"])


def _md_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _md_cell(cell: Cell | None) -> str:
    frames: dict[int, Callable[[str], str]] = {1: lambda t: f"**{t}**", 2: lambda t: f"<u>{t}</u>"}
    return _framed(cell, frames, " ± {}", "\\" + STAR, "-")


def _tex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tex_cell(cell: Cell | None) -> str:
    frames: dict[int, Callable[[str], str]] = {
        1: lambda t: rf"\textbf{{{t}}}",
        2: lambda t: rf"\underline{{{t}}}",
    }
    return _framed(cell, frames, r"\,{{\scriptsize$\pm${}}}", r"$^{*}$", "--")


def _framed(
    cell: Cell | None,
    frames: Mapping[int, Callable[[str], str]],
    deviation: str,
    star: str,
    absent: str,
) -> str:
    if cell is None:
        return absent
    text = frames.get(cell.place, str)(cell.text)
    spread = deviation.format(cell.deviation) if cell.deviation else ""
    return text + spread + cell.speed + (star if cell.worse else "")
