"""Fig. 7: the weight of the distance ratio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.paper.gains import all_speeds
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import ENOUGH, Sample, Verdict, above, by_trends, unmeasured
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

    Speeds at which all lambdas score the same have no best one and do not count.
    """
    values: list[float] = []
    trends, said = [], []
    for task, document in stored.results(LAMBDAS).items():
        numbers = document.numbers
        told = [each for each in numbers["by_speed"] if each["shape"] != FLAT]
        speeds = [each["speed"] for each in told]
        best = zip(*(each["best_lambda_of_runs"] for each in told), strict=True)
        values += [spearman(speeds, run) or 0.0 for run in best]  # a constant is no trend
        trends.append(numbers["trends"]["best_lambda"])
        listed = ", ".join(f"{each['best_lambda']:g} at {each['speed']:g}x" for each in told)
        said.append(f"{task_name(task)} {listed or 'all are equally good'}")
    if not trends:
        return unmeasured("lambda")
    judged = by_trends(trends, "the best lambda grows with the layer speed-up")
    if len(values) >= ENOUGH:
        judged = above(Sample(values))
        test = f"Spearman's rho of best lambda and layer speed-up of each run; {judged.test}"
        judged = Verdict(judged.holds, test, judged.numbers)
    return judged.saying(f"Best lambda: {'; '.join(said)}.")


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
    findings=(Finding("lambda", "The best lambda grows with the layer speed-up.", lambda_grows),),
)
