"""Tasks as the paper writes them, and those that its figures show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["DEV", "FOUR", "class_names", "listed", "task_name"]

NAMES = {
    "sst2": "SST-2", "mrpc": "MRPC", "rte": "RTE", "qnli": "QNLI", "qqp": "QQP", "mnli": "MNLI",
    "lcqmc": "LCQMC", "thucnews": "THUCNews",
}  # fmt: skip
FOUR = ("qqp", "sst2", "mnli", "qnli")  # the paper's representative subset, in its order
CLASSES = {  # of the numbers that the files have for them
    "sst2": ("negative", "positive"),
    "mrpc": ("other", "paraphrase"),
    "qqp": ("other", "duplicate"),
    "mnli": ("entailment", "neutral", "contradiction"),
    "qnli": ("answer", "no answer"),
    "rte": ("entailment", "none"),
    "lcqmc": ("other", "same"),
}
DEV = {"sst2": "dev"}  # figures are of development sets; the other tasks have no other rows


def task_name(task: str) -> str:
    return NAMES.get(task, task)


def class_names(task: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of an analysis with the classes of a task by name, where files number them."""
    names = {str(number): name for number, name in enumerate(CLASSES.get(task, ()))}
    found = dict(numbers)
    if "label_names" in found:
        found["label_names"] = [names.get(name, name) for name in found["label_names"]]
    if found.get("truth") is not None:
        found["truth"] = names.get(found["truth"], found["truth"])
    if "truth" in found:
        found["layers"] = [
            {**each, "prediction": names.get(each["prediction"], each["prediction"])}
            for each in found["layers"]
        ]
    return found


def listed(tasks: Iterable[str]) -> str:
    """`SST-2, QNLI`."""
    return ", ".join(task_name(task) for task in tasks)
