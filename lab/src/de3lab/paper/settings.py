"""How our result of an item was measured, in words, and how far it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from de3lab.documents import AnalysisResult, StudyResult
from de3lab.paper.item import Item
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import listed, task_name
from de3lab.tabular import Grid

__all__ = [
    "encoder_name",
    "here",
    "named_row",
    "row_name",
    "short_name",
    "state_of",
    "trainings_table",
]

ENCODERS = {  # as study files name them -> what they are, and more about it
    "gte-small": ("gte-small", "12 layers, 384 wide"),
    "$DE3_MINILM": ("all-MiniLM-L6-v2", "6 layers, 384 wide"),
    "$DE3_ZH_BACKBONE": ("a Chinese BERT-base cut to 6 layers", "768 wide"),
}
LAYERS = re.compile(r"layers-(\d+)")


def short_name(backbone: str) -> str:
    """What a study's backbone is called, without any folder."""
    name = backbone.rstrip("/").rpartition("/")[2]
    return ENCODERS.get(name, (name, ""))[0]


def encoder_name(backbone: str) -> str:
    """What a study's backbone is, with its size where that is known."""
    name = backbone.rstrip("/").rpartition("/")[2]
    short, more = ENCODERS.get(name, (name, ""))
    return f"{short} ({more})" if more else short


def row_name(document: StudyResult | None, method: str, paper: str) -> str:
    """What a row is here, and what the paper calls it: `gte-small, 6 layers (paper: BERT-6L)`."""
    return named_row(None if document is None else document.backbone, method, paper)


def named_row(backbone: str | None, method: str, paper: str) -> str:
    """The same of a backbone; None where nothing is measured yet."""
    cut, ours = LAYERS.fullmatch(method), method
    if backbone is not None and method == "full":
        ours = f"{short_name(backbone)}, all layers"
    elif backbone is not None and cut:
        ours = f"{short_name(backbone)}, {cut[1]} layers"
    return f"{ours} (paper: {paper})"


def trainings_table(studies: Mapping[str, StudyResult]) -> Grid:
    """How the models of every study were trained: a row for each kind of training."""
    rows: dict[tuple[Any, ...], list[str]] = {}
    for name, document in studies.items():
        for task in (each for each in document.tasks if each.rows and each.training):
            seen, steps = task.training, document.steps.get(task.name, {})
            counts = sorted({each.steps for each in steps.values()})
            row = (
                short_name(document.backbone),
                task_name(task.name),
                seen["pooling"],
                f"{seen['epochs']:g}",
                f"{seen['learning_rate']:g}",
                f"{seen['head_learning_rate']:g}",
                f"{seen['batch_size']:g}",
                f"{seen['max_length']:g}",
                (task.rows or {}).get("train"),
                " or ".join(str(count) for count in counts),
            )
            rows.setdefault(row, []).append(name)
    columns = ("study", "backbone", "task", "pooling", "epochs", "learning rate", "of heads",
               "batch", "tokens", "training rows", "steps")  # fmt: skip
    note = (
        "Of heads: the learning rate of heads and routers; the paper has one rate for all. Where "
        "two numbers of steps stand, methods have different ones: each table says which."
    )
    made = tuple((", ".join(names), *row) for row, names in rows.items())
    return Grid("How the models were trained", columns, made, note)


def state_of(item: Item, stored: Stored) -> tuple[str, bool]:
    """What is stored in a few words, and whether it is anything at all."""
    if item.training is None:
        return "nothing to measure", True
    if results := stored.results(item):
        missing = [task for task in item.training.tasks if task not in results]
        lacking = f"; not yet on {listed(missing)}" if missing else ""
        return f"measured on {listed(results)}{lacking}", True
    document = stored.study(item.training.study)
    if document is None or not item.of_study:
        return "not measured yet", False
    progress = document.progress
    return f"{progress.done} of {progress.of} trainings finished", bool(progress.done)


def here(item: Item, stored: Stored) -> list[str]:
    """The setting of ours, a line for each study or task."""
    if item.training is None:
        return []
    lines = [_of_result(task, doc) for task, doc in stored.results(item).items()]
    document = stored.study(item.training.study)
    if document is not None and item.of_study:
        lines += _of_study(document)
    return lines


def _of_result(task: str, document: AnalysisResult) -> str:
    parts = []
    if document.backbone is not None:
        parts.append(encoder_name(document.backbone))
    if document.training_rows:
        parts.append(f"{document.training_rows} training rows")
    if "rows" in document.numbers:
        test = document.source.test if document.source else "the test file"
        parts.append(f"{document.numbers['rows']} rows of {test}")
    if document.seeds:
        parts.append(_seeds(document.seeds))
    date = document.date.partition("T")[0]
    return f"{task_name(task)}: {', '.join(parts)}; {date}, {document.machine}."


def _of_study(document: StudyResult) -> list[str]:
    date, progress = document.date.partition("T")[0], document.progress
    lines = [
        f"{encoder_name(document.backbone)}; {date}, {'; '.join(document.machines)}; "
        f"{progress.done} of {progress.of} trainings."
    ]
    for task in document.tasks:
        if task.rows is not None:
            lines.append(
                f"{task_name(task.name)}: {task.rows['train']} training rows, "
                f"{task.rows.get(f'test-{task.test}')} rows of {task.test}, scored by "
                f"{' and '.join(task.metrics)}, {_seeds(task.seeds)} planned."
            )
    return lines


def _seeds(seeds: Sequence[int]) -> str:
    listed = ", ".join(str(seed) for seed in seeds)
    return f"seed {listed}" if len(seeds) == 1 else f"seeds {listed}"
