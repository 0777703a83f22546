"""Table I: the data sets, and the rows of them that were used here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.paper.item import Item
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import task_name
from de3lab.tabular import Grid

__all__ = ["DATA"]

STUDIES = ("paper_methods", "paper_shift", "paper_chinese")
PUBLISHED = {  # name, task, classes, training rows, test rows
    "sst2": ("SST-2", "sentiment", 2, "67k", "1.8k"),
    "mrpc": ("MRPC", "paraphrase", 2, "3.7k", "1.7k"),
    "qqp": ("QQP", "paraphrase", 2, "364k", "391k"),
    "mnli": ("MNLI", "inference", 3, "393k", "20k"),
    "qnli": ("QNLI", "question answering, inference", 2, "105k", "5.4k"),
    "rte": ("RTE", "inference", 2, "2.5k", "3k"),
}


def data_tables(stored: Stored) -> list[Grid]:
    """Rows that were used here beside the sizes of the data sets."""
    used = _rows(stored)
    rows: list[tuple[Any, ...]] = [
        (name, kind, classes, _part(used.get(task), "train"), _part(used.get(task), "calibration"),
         train, _tests(used.get(task)), test)
        for task, (name, kind, classes, train, test) in PUBLISHED.items()
    ]  # fmt: skip
    rows += [
        (task_name(task), None, None, _part(seen, "train"), _part(seen, "calibration"), None,
         _tests(seen), None)
        for task, seen in used.items()
        if task not in PUBLISHED
    ]  # fmt: skip
    columns = ("data set", "task", "classes", "train ours", "calibration ours", "train paper",
               "test ours", "test paper")  # fmt: skip
    note = (
        "Ours: rows drawn by the seed from the training file, without overlap; thresholds and "
        "lambda are chosen on calibration rows. The paper scores GLUE's test sets on its server."
    )
    return [Grid("Rows", columns, tuple(rows), note)]


def _rows(stored: Stored) -> dict[str, Mapping[str, int]]:
    found: dict[str, Mapping[str, int]] = {}
    for name in STUDIES:
        study = stored.study(name)
        for task in study.tasks if study else ():
            if task.rows is not None:
                shown = task.name
                if name == "paper_shift":  # the target, which is another data set
                    shown = f"{task_name(shown)} on {task.test}"
                found.setdefault(shown, task.rows)
    return found


def _part(rows: Mapping[str, int] | None, name: str) -> int | None:
    return None if rows is None else rows.get(name)


def _tests(rows: Mapping[str, int] | None) -> str | None:
    if rows is None:
        return None
    tests = {name.removeprefix("test-"): count for name, count in rows.items() if "-" in name}
    return ", ".join(f"{count} ({name})" for name, count in tests.items())


DATA = Item(
    name="data",
    references=("Table I",),
    labels=("tab:dataset_statistics",),
    title="Data sets",
    shows="Six classification tasks of GLUE.",
    published=PUBLISHED,
    tables=data_tables,
)
