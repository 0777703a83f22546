"""Tasks as the paper writes them, and those that its figures show."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["DEV", "FOUR", "listed", "task_name"]

NAMES = {
    "sst2": "SST-2", "mrpc": "MRPC", "rte": "RTE", "qnli": "QNLI", "qqp": "QQP", "mnli": "MNLI",
    "lcqmc": "LCQMC", "thucnews": "THUCNews",
}  # fmt: skip
FOUR = ("qqp", "sst2", "mnli", "qnli")  # the paper's representative subset, in its order
DEV = {"sst2": "dev"}  # figures are of development sets; the other tasks have no other rows


def task_name(task: str) -> str:
    return NAMES.get(task, task)


def listed(tasks: Iterable[str]) -> str:
    """`SST-2, QNLI`."""
    return ", ".join(task_name(task) for task in tasks)
