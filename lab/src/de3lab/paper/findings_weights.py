"""Findings about the two weights: lambda of the distance ratio and alpha of the regulariser."""

from __future__ import annotations

from de3lab.paper.judging import ENOUGH, Holds, Judged, Sample, above, by_trends
from de3lab.paper.names import task_name
from de3lab.paper.published import published
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict, unmeasured, verdict
from de3lab.statistics import SIGNIFICANCE, range_test, spearman

__all__ = ["WEIGHTS"]

FLAT = "flat"  # the shape of scores that no lambda changes


def lambda_grows(stored: Stored) -> Verdict:
    """Spearman's correlation of the best lambda with the layer speed-up, run by run.

    Speeds at which all lambdas score the same have no best one and do not count.
    """
    values: list[float] = []
    trends, said = [], []
    for task, document in stored.results("lambda").items():
        numbers = document["numbers"]
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
        judged = Judged(judged.holds, test, judged.numbers)
    return verdict(judged, f"Best lambda: {'; '.join(said)}.")


def alpha_does_not_matter(stored: Stored) -> Verdict:
    """The range of mean scores over alpha, below one point at every speed."""
    limit = published()["alpha"]["largest_change"] / 100
    found = [
        {**each, "task": task, "runs": min(document["numbers"]["runs"])}
        for task, document in stored.results("alpha").items()
        for each in document["numbers"]["by_speed"]
    ]
    if not found:
        return unmeasured("alpha")
    widest = max(found, key=lambda each: float(each["range"]))
    said = (
        f"The largest range is {100 * widest['range']:.2f} points "
        f"({task_name(widest['task'])} at {widest['speed']:g}x)."
    )
    p = range_test(widest["range"], widest["run_sd"], len(widest["scores"]), widest["runs"])
    noise = "" if p is None else f", Tukey's test against the spread of seeds p = {p:.2g}"
    test = (
        f"ranges of the means at {len(found)} tasks and speeds below {100 * limit:g} point{noise}"
    )
    holds: Holds = "not significant"
    if p is None:
        test = "no test: one run of each alpha says nothing about noise"
    elif widest["range"] < limit:
        holds = "yes"
    elif p < SIGNIFICANCE:
        holds = "no"
    return Verdict(holds, said, test, {"range": widest["range"], "p": p, "n": widest["runs"]})


WEIGHTS = {
    finding.name: finding
    for finding in (
        Finding("lambda", "The best lambda grows with the layer speed-up.", ("lambda",),
                lambda_grows),
        Finding("alpha", "The choice of alpha changes scores by less than 1 %.", ("alpha",),
                alpha_does_not_matter),
    )
}  # fmt: skip
