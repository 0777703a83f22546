"""Fig. 9: how well each signal knows a right answer; beside it the same with one learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from de3lab.documents import AnalysisResult
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.items.indicator import ONE_RATE_SETTING
from de3lab.paper.judging import (
    Sample,
    Verdict,
    above,
    in_hundredths,
    points,
    unmeasured,
    weakest,
)
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, FOUR, task_name
from de3lab.tabular import Grid

__all__ = ["CORRECTNESS", "ONE_RATE_CORRECTNESS"]


def _item(one_rate: bool) -> Item:
    return ONE_RATE_CORRECTNESS if one_rate else CORRECTNESS


def correctness_tables(stored: Stored, one_rate: bool = False) -> list[Grid]:
    """Accuracy of correctness estimation on all tasks."""
    rows = []
    for task, document in stored.results(_item(one_rate)).items():
        numbers = document.numbers
        for each in numbers["estimation"]:
            rows.append(
                (
                    task_name(task),
                    each["layer"],
                    f"{each['tau']:g}",
                    f"{100 * each['entropy']['mean']:.1f}",
                    f"{100 * each['edr']['mean']:.1f}",
                    _with_interval(each["difference"]),
                    numbers["runs"],
                )
            )
    if not rows:
        return []
    columns = ("task", "layer", "threshold", "entropy", "EDR", "difference", "runs")
    note = (
        "Percent of rows of which the signal says correctly whether the answer is right; in "
        "brackets the 95 % interval over rows."
    )
    return [Grid("Accuracy of correctness estimation", columns, tuple(rows), note)]


def _with_interval(seen: Mapping[str, Any]) -> str:
    low, high = (100 * seen[end] for end in ("low", "high"))
    return f"{100 * seen['mean']:+.1f} [{low:+.1f}, {high:+.1f}]"


def knows_better(stored: Stored) -> Verdict:
    """Accuracy of correctness estimation, EDR less entropy, the mean over layers."""
    values: list[float] = []
    intervals, said = [], []
    for task, document in stored.results(CORRECTNESS).items():
        seen = _estimation(document)
        gains = [each["difference"] for each in seen]
        values += np.mean([each["values"] for each in gains], axis=0).tolist()
        intervals += [(each["low"], each["high"]) for each in gains]
        listed = ", ".join(f"{points(e['difference']['mean'])} at layer {e['layer']}" for e in seen)
        said.append(f"{task_name(task)} {listed}")
    if not values:
        return unmeasured("correctness")
    return above(Sample(values, intervals)).saying(f"EDR less entropy: {'; '.join(said)}.")


def ranks_better(stored: Stored, one_rate: bool = False) -> Verdict:
    """The same without a threshold: ROC-AUC, EDR less entropy, the mean over layers."""
    values: list[float] = []
    intervals, said = [], []
    for task, document in stored.results(_item(one_rate)).items():
        gains = _ranked(document)
        if not gains:
            continue
        values += np.mean([seen["values"] for seen in gains.values()], axis=0).tolist()
        intervals += _intervals(gains)
        listed = ", ".join(f"{seen['mean']:+.3f} at layer {k}" for k, seen in gains.items())
        said.append(f"{task_name(task)} {listed}")
    if not values:
        return unmeasured(_item(one_rate).name)
    judged = in_hundredths(above(Sample(values, intervals)))
    return judged.saying(f"ROC-AUC of EDR less that of entropy: {'; '.join(said)}.")


def most_when_shallow(stored: Stored, one_rate: bool = False) -> Verdict:
    """The gain in ROC-AUC at the shallowest layer, above 0 and above that at the deepest.

    Without a threshold, because at shallow layers hardly any signal is below the paper's. Over
    runs alone: the layers of one model are not independent samples.
    """
    first: list[float] = []
    less: list[float] = []
    intervals, said = [], []
    for task, document in stored.results(_item(one_rate)).items():
        gains = _ranked(document)
        if len(gains) < 2:
            continue
        shallow, deep = min(gains), max(gains)
        first += gains[shallow]["values"]
        both = zip(gains[shallow]["values"], gains[deep]["values"], strict=True)
        less += [a - b for a, b in both]
        intervals += _intervals({shallow: gains[shallow]})
        told = (f"{gains[layer]['mean']:+.3f} at layer {layer}" for layer in (shallow, deep))
        said.append(f"{task_name(task)} {' and '.join(told)}")
    if not first:
        return unmeasured(_item(one_rate).name)
    there = above(Sample(first, intervals))
    falls = above(Sample(less))
    tests = f"there: {in_hundredths(there).test}; falling: {falls.test}"
    statement = f"Gain in ROC-AUC of EDR over entropy: {'; '.join(said)}."
    numbers = {"there": there.numbers, "falls": falls.numbers}
    return Verdict(weakest([there, falls]).holds, tests, numbers, statement)


def _estimation(document: AnalysisResult) -> list[Mapping[str, Any]]:
    """The layers at the first threshold, the shallowest first."""
    numbers = document.numbers
    tau = numbers["tau"][0]
    return sorted(
        (each for each in numbers["estimation"] if each["tau"] == tau),
        key=lambda e: int(e["layer"]),
    )


def _ranked(document: AnalysisResult) -> dict[int, Mapping[str, Any]]:
    """Layer -> difference in ROC-AUC, at the layers of the settings where there is one."""
    numbers = document.numbers
    return {
        int(each["layer"]): each["difference"]
        for each in numbers["auc"]
        if each["layer"] in numbers["layers"] and each["difference"] is not None
    }


def _intervals(gains: Mapping[int, Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [(g["low"], g["high"]) for g in gains.values() if g["low"] is not None]


CORRECTNESS = Item(
    name="correctness",
    references=("Fig. 9",),
    labels=("fig:correctness_estimation",),
    title="How well each signal knows a right answer",
    shows="At layers 2, 5 and 10 with a threshold of 0.2, EDR tells right from wrong answers "
    "better than entropy on all four tasks, most of all at shallow layers.",
    setting="BERT-base, all training rows, development sets, layers 2, 5 and 10, threshold 0.2",
    training=Training("paper_methods", ("de3",), FOUR),
    measurement=Measurement("correctness", {"de3": "de3"}, rows=DEV, settings=LAMBDAS_OF),
    tables=correctness_tables,
    findings=(
        Finding(
            "correctness",
            "At the threshold 0.2, EDR tells right answers from wrong ones better than entropy.",
            knows_better,
        ),
        Finding(
            "ranking",
            "The same without a threshold (our measure, ROC-AUC): EDR knows right answers better.",
            ranks_better,
        ),
        Finding("shallow", "EDR knows better most of all at shallow layers.", most_when_shallow),
    ),
)
ONE_RATE_CORRECTNESS = replace(
    CORRECTNESS,
    name="one-rate-correctness",
    references=(),
    labels=(),
    beside="Fig. 9",
    title="The same with one learning rate for encoder and heads",
    shows="Nothing is said of learning rates of heads; there is one for all.",
    setting=ONE_RATE_SETTING,
    training=Training("paper_one_rate"),
    tables=partial(correctness_tables, one_rate=True),
    findings=(
        Finding(
            "one-rate-ranking",
            "With one rate for encoder and heads, EDR knows right answers better (ROC-AUC).",
            partial(ranks_better, one_rate=True),
        ),
        Finding(
            "one-rate-shallow",
            "With one rate, EDR knows better most of all at shallow layers.",
            partial(most_when_shallow, one_rate=True),
        ),
    ),
)
