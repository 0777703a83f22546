"""Tables of settings: data sets, what methods are made of, hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3bert.methods import METHODS
from de3lab.paper.names import task_name
from de3lab.paper.published import published
from de3lab.paper.stored import Stored
from de3lab.tabular import Grid

__all__ = ["baseline_tables", "data_tables", "hyperparameter_tables"]

STUDIES = ("paper_methods", "paper_shift", "paper_chinese")
SPEEDS = ("2", "3")


def data_tables(stored: Stored) -> list[Grid]:
    """Rows that were used here beside the sizes of the data sets."""
    report, used = published()["data"], _rows(stored)
    rows = [
        (each["name"], each["task"], each["classes"], _part(used.get(task), "train"),
         _part(used.get(task), "calibration"), each["train"], _tests(used.get(task)), each["test"])
        for task, each in report.items()
    ]  # fmt: skip
    rows += [
        (task_name(task), None, None, _part(seen, "train"), _part(seen, "calibration"), None,
         _tests(seen), None)
        for task, seen in used.items()
        if task not in report
    ]  # fmt: skip
    columns = ("data set", "task", "classes", "train ours", "calibration ours", "train paper",
               "test ours", "test paper")  # fmt: skip
    note = (
        "Ours: rows drawn by the seed from the training file, without overlap; thresholds and "
        "lambda are chosen on calibration rows. The paper scores GLUE's test sets on its server."
    )
    return [Grid("Rows", columns, tuple(rows), note)]


def baseline_tables() -> list[Grid]:
    """What the methods declare here beside the paper's summary of them."""
    rows = []
    for name, each in published()["baselines"].items():
        method = METHODS[name]
        training = METHODS[method.training or name]
        losses = dict.fromkeys(term.loss for phase in training.phases for term in phase.terms)
        rows.append(
            (
                f"{each['name']} ({name})",
                ", ".join(method.families),
                each["criterion"],
                training.heads,
                each["head"],
                ", ".join(loss.replace("_", " ") for loss in losses),
                each["objective"],
            )
        )
    columns = ("method", "leaves by, ours", "paper", "exit, ours", "paper", "losses, ours", "paper")
    return [Grid("Methods", columns, tuple(rows), "`de3 methods NAME` says more about each.")]


def hyperparameter_tables(stored: Stored) -> list[Grid]:
    """The settings of DE3's trainings here, and the lambda that calibration rows chose."""
    report = published()["hyperparameters"]
    tasks = [task for task in report["lambda"] if task != "range"]
    runs: dict[str, Mapping[str, Any]] = {}
    for record in stored.runs("paper_methods"):
        if record["training"] == "de3":
            runs.setdefault(record["task"], record)
    rows = []
    for name, values in report.items():
        cells: list[str | None] = []
        for task in tasks:
            cells += [_setting(runs.get(task), name), f"{values[task]:g}"]
        listed = ", ".join(f"{value:g}" for value in values["range"])
        rows.append((name.replace("_", " "), listed, *cells))
    heads = (f"{task_name(task)} {who}" for task in tasks for who in ("ours", "paper"))
    note = (
        "Ours are fixed but for lambda, which calibration rows choose for each layer speed-up "
        "(2x, 3x); the paper searches over all of them. Seed: the first that is stored."
    )
    return [Grid("DE3's settings", ("setting", "range, paper", *heads), tuple(rows), note)]


def _rows(stored: Stored) -> dict[str, Mapping[str, int]]:
    found: dict[str, Mapping[str, int]] = {}
    for name in STUDIES:
        for task in (stored.study(name) or {"tasks": []})["tasks"]:
            if task["rows"] is not None:
                shown = task["name"]
                if name == "paper_shift":  # the target, which is another data set
                    shown = f"{task_name(shown)} on {task['test']}"
                found.setdefault(shown, task["rows"])
    return found


def _part(rows: Mapping[str, int] | None, name: str) -> int | None:
    return None if rows is None else rows.get(name)


def _tests(rows: Mapping[str, int] | None) -> str | None:
    if rows is None:
        return None
    tests = {name.removeprefix("test-"): count for name, count in rows.items() if "-" in name}
    return ", ".join(f"{count} ({name})" for name, count in tests.items())


def _setting(record: Mapping[str, Any] | None, name: str) -> str | None:
    if record is None:
        return None
    if name == "lambda":
        choices = record["methods"].get("de3", {}).get("choices", {})
        chosen = [choices.get(speed) for speed in SPEEDS]
        return ", ".join("-" if each is None else _lambda(each["family"]) for each in chosen)
    settings = record["settings"]
    value = settings["options"].get(name, settings["train"].get(name))
    return None if value is None else f"{value:g}"


def _lambda(family: str) -> str:
    return family.partition("lambda=")[2].rstrip(")") or family
