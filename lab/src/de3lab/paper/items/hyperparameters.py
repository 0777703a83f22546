"""Table XII: the settings of the trainings."""

from __future__ import annotations

from de3lab.documents import RunRecord
from de3lab.paper.item import Item
from de3lab.paper.rivals import BOTH
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import task_name
from de3lab.tabular import Grid

__all__ = ["HYPERPARAMETERS", "LAMBDAS_OF"]

TASKS = ("mnli", "mrpc", "qnli", "qqp", "rte", "sst2")
PUBLISHED: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {  # range, chosen for each task
    "batch_size": ((16, 32, 128), (32, 32, 32, 32, 16, 32)),
    "learning_rate": ((1e-5, 2e-5, 3e-5, 5e-5), (2e-5, 3e-5, 3e-5, 2e-5, 2e-5, 2e-5)),
    "alpha": ((1e-4, 1e-3, 1e-2, 1e-1), (1e-1, 1e-4, 1e-3, 1e-2, 1e-1, 1e-1)),
    "lambda": ((0.667, 1.0, 1.5, 2.0, 3.0), (0.667, 1.5, 2.0, 0.667, 1.5, 1.0)),
}
# The paper's lambda of each task: chosen there, not here, so that nothing is tuned on test rows.
LAMBDAS_OF = {
    task: {"lambdas": [weight]} for task, weight in zip(TASKS, PUBLISHED["lambda"][1], strict=True)
}


def hyperparameter_tables(stored: Stored) -> list[Grid]:
    """The settings of DE3's trainings here, and the lambda that calibration rows chose."""
    runs: dict[str, RunRecord] = {}
    for record in stored.runs("paper_methods"):
        if record.training == "de3":
            runs.setdefault(record.task, record)
    rows = []
    for name, (searched, chosen) in PUBLISHED.items():
        cells: list[str | None] = []
        for task, value in zip(TASKS, chosen, strict=True):
            cells += [_setting(runs.get(task), name), f"{value:g}"]
        listed = ", ".join(f"{value:g}" for value in searched)
        rows.append((name.replace("_", " "), listed, *cells))
    heads = (f"{task_name(task)} {who}" for task in TASKS for who in ("ours", "paper"))
    note = (
        "Ours are fixed but for lambda, which calibration rows choose for each layer speed-up "
        "(2x, 3x); the paper searches over all of them. Seed: the first that is stored."
    )
    return [Grid("DE3's settings", ("setting", "range, paper", *heads), tuple(rows), note)]


def _setting(record: RunRecord | None, name: str) -> str | None:
    if record is None:
        return None
    if name == "lambda":
        choices = record.methods["de3"].choices if "de3" in record.methods else {}
        chosen = [choices.get(speed) for speed in BOTH]
        return ", ".join("-" if each is None else _lambda(each.family) for each in chosen)
    settings = record.settings
    value = settings["options"].get(name, settings["train"].get(name))
    return None if value is None else f"{value:g}"


def _lambda(family: str) -> str:
    return family.partition("lambda=")[2].rstrip(")") or family


HYPERPARAMETERS = Item(
    name="hyperparameters",
    references=("Table XII",),
    labels=("tab:hyperparameter_selection",),
    title="Settings of the trainings",
    shows="The paper searches over batch size, learning rate, alpha and lambda on every task.",
    published=PUBLISHED,
    tables=hyperparameter_tables,
)
