"""Fig. 7: the weight of the distance ratio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3lab.paper.gains import all_speeds
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import Sample, Verdict, above, points, too_few, unmeasured, weakest
from de3lab.paper.rivals import BOTH
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, task_name
from de3lab.statistics import spearman
from de3lab.tabular import Grid

__all__ = ["LAMBDAS"]

FLAT = "flat"  # the shape of scores that no lambda changes
SEARCHED = (0, 10)  # what the paper recommends


def lambda_tables(stored: Stored) -> list[Grid]:
    """The best lambda at each layer speed-up, and what it gives over entropy."""
    results = stored.results(LAMBDAS)
    if not results:
        return []
    speeds = all_speeds(results)
    rows = []
    for task, document in results.items():
        by_speed = {each["speed"]: each for each in document.numbers["by_speed"]}
        cells = (_best(by_speed.get(speed)) for speed in speeds)
        rows.append((task_name(task), document.numbers["runs"], *cells))
    columns = ("task", "runs", *(f"{speed:g}x" for speed in speeds))
    note = (
        "In brackets what it gives over lambda 0, which is entropy, in points; never below 0, "
        "since lambda is chosen on the rows it is scored on. The paper recommends a search from "
        "{} to {}.".format(*SEARCHED)
    )
    return [Grid("Best lambda at each layer speed-up", columns, tuple(rows), note)]


def _best(seen: Mapping[str, Any] | None) -> str | None:
    if seen is None:
        return None
    best = "any" if seen["shape"] == FLAT else f"{seen['best_lambda']:g}"
    return f"{best} ({100 * seen['gain']['mean']:+.2f})"


def lambda_grows(stored: Stored) -> Verdict:
    """Spearman's correlation of the best lambda with the layer speed-up, run by run.

    Speeds at which all lambdas score the same have no best one and do not count. The speeds of one
    model are no independent samples: a run is one value.
    """
    values: list[float] = []
    said = []
    for task, document in stored.results(LAMBDAS).items():
        numbers = document.numbers
        told = [each for each in numbers["by_speed"] if each["shape"] != FLAT]
        speeds = [each["speed"] for each in told]
        best = zip(*(each["best_lambda_of_runs"] for each in told), strict=True)
        values += [spearman(speeds, run) or 0.0 for run in best]  # a constant is no trend
        listed = ", ".join(f"{each['best_lambda']:g} at {each['speed']:g}x" for each in told)
        said.append(f"{task_name(task)} {listed or 'all are equally good'}")
    if not said:
        return unmeasured("lambda")
    statement = f"Best lambda: {'; '.join(said)}."
    if not values:
        return Verdict(
            "not significant", "no test: no lambda is better than others", {"n": 0}, statement
        )
    judged = above(Sample(values))
    test = f"Spearman's rho of best lambda and layer speed-up of each run; {judged.test}"
    return Verdict(judged.holds, test, judged.numbers, statement)


def lambda_rises_then_falls(stored: Stored) -> Verdict:
    """A lambda inside the range, above both of its ends: 0, which is entropy, and the highest.

    Which one is chosen for a run on the other runs of its task, so that none is chosen by what it
    is scored by; scores are means of 2x and 3x.
    """
    first: list[float] = []
    last: list[float] = []
    for document in stored.results(LAMBDAS).values():
        scores = _scores(document.numbers)
        for run in range(scores.shape[0] if scores.size else 0):
            others = np.delete(scores, run, axis=0)
            if len(others):
                inside = 1 + int(others.mean(axis=0)[1:-1].argmax())
                first.append(float(scores[run, inside] - scores[run, 0]))
                last.append(float(scores[run, inside] - scores[run, -1]))
    known = stored.results(LAMBDAS)
    if not known:
        return unmeasured("lambda")
    tasks = ", ".join(task_name(task) for task in known)
    if not first:
        alone = too_few(Sample([0.0] * len(known)))
        said = f"Lambda is chosen on other runs than it is scored by, which takes two ({tasks})."
        return Verdict(alone.holds, alone.test, {"n": len(known)}, said)
    rises, falls = above(Sample(first)), above(Sample(last))
    statement = (
        f"The best lambda inside less lambda 0: {points(Sample(first).mean)}; less the highest: "
        f"{points(Sample(last).mean)} (mean of 2x and 3x, {tasks})."
    )
    tests = f"rises: {rises.test}; falls: {falls.test}; both must hold"
    numbers = {"rises": rises.numbers, "falls": falls.numbers}
    return Verdict(weakest([rises, falls]).holds, tests, numbers, statement)


def _scores(numbers: Mapping[str, Any]) -> NDArray[np.float64]:
    """The mean of 2x and 3x for every lambda, (runs, lambdas); lambdas rise from 0."""
    at = [each for each in numbers["by_speed"] if f"{each['speed']:g}" in BOTH]
    values = [[score["values"] for score in each["scores"]] for each in at]
    return np.asarray(values, dtype=np.float64).mean(axis=0).T if values else np.empty((0, 0))


LAMBDAS = Item(
    name="lambda",
    references=("Fig. 7",),
    labels=("fig:lamda_sensitivity",),
    title="The weight of the distance ratio",
    shows="As lambda grows, the score first rises and then falls; the best lambda is higher at "
    "higher speeds, and so is what the distance ratio gives.",
    setting="BERT-base, alpha 0.1 (SST-2) and 0.001 (QNLI), development sets",
    training=Training("paper_methods", ("de3",), ("sst2", "qnli")),
    measurement=Measurement("lambda", {"de3": "de3"}, rows=DEV),
    tables=lambda_tables,
    findings=(
        Finding(
            "lambda-shape",
            "As lambda grows, the score first rises and then falls.",
            lambda_rises_then_falls,
        ),
        Finding("lambda", "The best lambda grows with the layer speed-up.", lambda_grows),
    ),
)
