"""Fig. 8: the weight of the regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.analysis.alpha import LIMIT
from de3lab.paper.gains import all_speeds
from de3lab.paper.item import Finding, Item, Measurement, Training, Varied
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.judging import ENOUGH, Verdict, count_of, decided, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, task_name
from de3lab.statistics import SIGNIFICANCE, range_test
from de3lab.tabular import Grid

__all__ = ["ALPHA"]

VALUES = (1e-4, 1e-3, 1e-2, 1e-1)


def alpha_tables(stored: Stored) -> list[Grid]:
    """How far scores differ between values of alpha."""
    results = stored.results(ALPHA)
    if not results:
        return []
    speeds = all_speeds(results)
    rows: list[tuple[Any, ...]] = []
    for task, document in results.items():
        numbers = document.numbers
        by_speed = {each["speed"]: each for each in numbers["by_speed"]}
        cells = (_range(by_speed.get(speed)) for speed in speeds)
        rows.append((task_name(task), _numbers(numbers["alphas"]), min(numbers["runs"]), *cells))
    limit = f"below {100 * LIMIT:g}"
    rows.append(("paper: SST-2, QNLI", _numbers(VALUES), None, *(limit for _ in speeds)))
    columns = ("task", "alpha", "runs of each", *(f"{speed:g}x" for speed in speeds))
    note = "Highest mean score less the lowest, in points; ± deviation between runs of one alpha."
    return [Grid("How much alpha matters", columns, tuple(rows), note)]


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _range(seen: Mapping[str, Any] | None) -> str | None:
    if seen is None:
        return None
    spread = "" if seen["run_sd"] is None else f" ± {100 * seen['run_sd']:.2f}"
    return f"{100 * seen['range']:.2f}{spread}"


def alpha_does_not_matter(stored: Stored) -> Verdict:
    """The range of mean scores over alpha, below one point at every speed."""
    found = [
        {**each, "task": task, "runs": min(document.numbers["runs"])}
        for task, document in stored.results(ALPHA).items()
        for each in document.numbers["by_speed"]
    ]
    if not found:
        return unmeasured("alpha")
    widest = max(found, key=lambda each: float(each["range"]))
    said = (
        f"The largest range is {100 * widest['range']:.2f} points "
        f"({task_name(widest['task'])} at {widest['speed']:g}x)."
    )
    p = range_test(widest["range"], widest["run_sd"], len(widest["scores"]), widest["runs"])
    numbers = {"range": widest["range"], "p": p, "n": widest["runs"]}
    if p is None or widest["runs"] < ENOUGH:
        test = f"no test: {count_of(widest['runs'])} of each alpha, {ENOUGH} are needed"
        return Verdict("too few runs", test, numbers, said)
    test = (
        f"ranges of the means at {len(found)} tasks and speeds below {100 * LIMIT:g} point, "
        f"Tukey's test against the spread of seeds p = {p:.2g}"
    )
    return Verdict(decided(widest["range"] < LIMIT, p < SIGNIFICANCE), test, numbers, said)


ALPHA = Item(
    name="alpha",
    references=("Fig. 8",),
    labels=("fig:arfa_sensitivity",),
    title="The weight of the regulariser",
    shows="Between 0.0001 and 0.1 the choice of alpha changes the score by less than one percent "
    "at every speed.",
    setting="BERT-base, lambda 1 (SST-2) and 2 (QNLI), development sets",
    training=Training("paper_alpha", varied=Varied("de3", "alpha", VALUES)),
    measurement=Measurement("alpha", {"de3": "de3"}, rows=DEV, settings=LAMBDAS_OF),
    tables=alpha_tables,
    findings=(
        Finding(
            "alpha",
            "The choice of alpha changes scores by less than 1 %.",
            alpha_does_not_matter,
        ),
    ),
)
