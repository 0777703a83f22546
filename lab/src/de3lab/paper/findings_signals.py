"""Findings about the signals: correctness, correlation, and the two weights lambda and alpha."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from de3lab.paper.judging import ENOUGH, Judged, Sample, above, by_trends, points, weakest
from de3lab.paper.names import task_name
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict, unmeasured, verdict

__all__ = ["SIGNALS"]


def knows_better(stored: Stored) -> Verdict:
    """Accuracy of correctness estimation, EDR less entropy, the mean over layers."""
    values: list[float] = []
    intervals, said = [], []
    for task, document in stored.results("correctness").items():
        seen = _estimation(document)
        gains = [each["difference"] for each in seen]
        values += np.mean([each["values"] for each in gains], axis=0).tolist()
        intervals += [(each["low"], each["high"]) for each in gains]
        listed = ", ".join(f"{points(e['difference']['mean'])} at layer {e['layer']}" for e in seen)
        said.append(f"{task_name(task)} {listed}")
    if not values:
        return unmeasured("correctness")
    return verdict(above(Sample(values, intervals)), f"EDR less entropy: {'; '.join(said)}.")


def ranks_better(stored: Stored, item: str = "correctness") -> Verdict:
    """The same without a threshold: ROC-AUC, EDR less entropy, the mean over layers."""
    values: list[float] = []
    intervals, said = [], []
    for task, document in stored.results(item).items():
        gains = _ranked(document)
        if not gains:
            continue
        values += np.mean([seen["values"] for seen in gains.values()], axis=0).tolist()
        intervals += _intervals(gains)
        listed = ", ".join(f"{seen['mean']:+.3f} at layer {k}" for k, seen in gains.items())
        said.append(f"{task_name(task)} {listed}")
    if not values:
        return unmeasured(item)
    judged = _in_hundredths(above(Sample(values, intervals)))
    return verdict(judged, f"ROC-AUC of EDR less that of entropy: {'; '.join(said)}.")


def most_when_shallow(stored: Stored, item: str = "correctness") -> Verdict:
    """The gain in ROC-AUC at the shallowest layer, above 0 and above that at the deepest.

    Without a threshold, because at shallow layers hardly any signal is below the paper's.
    """
    first: list[float] = []
    less: list[float] = []
    intervals, trends, said = [], [], []
    for task, document in stored.results(item).items():
        gains = _ranked(document)
        if len(gains) < 2:
            continue
        shallow, deep = min(gains), max(gains)
        first += gains[shallow]["values"]
        both = zip(gains[shallow]["values"], gains[deep]["values"], strict=True)
        less += [a - b for a, b in both]
        intervals += _intervals({shallow: gains[shallow]})
        trends.append(document["numbers"]["trend"])
        means = (gains[layer]["mean"] for layer in (shallow, deep))
        told = " and ".join(
            f"{mean:+.3f} at layer {k}" for mean, k in zip(means, (shallow, deep), strict=True)
        )
        said.append(f"{task_name(task)} {told}")
    if not first:
        return unmeasured(item)
    there = above(Sample(first, intervals))
    falls = (
        by_trends(trends, "the gain falls with the layer")
        if len(less) < ENOUGH
        else above(Sample(less))
    )
    judged = weakest([there, falls])
    tests = f"there: {_in_hundredths(there).test}; falling: {falls.test}"
    statement = f"Gain in ROC-AUC of EDR over entropy: {'; '.join(said)}."
    return Verdict(judged.holds, statement, tests, {"there": there.numbers, "falls": falls.numbers})


def networks_decorrelate(stored: Stored) -> Verdict:
    """Spearman's correlation without prototypical networks less that with them."""
    values: list[float] = []
    intervals, said = [], []
    for task, document in stored.results("homogeneity").items():
        numbers = document["numbers"]
        layer = numbers["layers"][0]
        ours, theirs = (_correlations(numbers, k, layer) for k in (0, 1))
        less = next(each for each in numbers["differences"] if each["layer"] == layer)
        if ours["mean"] is None or theirs["mean"] is None:
            continue
        values += [b - a for a, b in zip(ours["values"], theirs["values"], strict=True)]
        intervals.append((less["low"], less["high"]))
        said.append(f"{task_name(task)} {ours['mean']:.2f} with, {theirs['mean']:.2f} without")
    if not values:
        return unmeasured("homogeneity")
    judged = _in_hundredths(above(Sample(values, intervals)))
    return verdict(judged, f"Correlation at layer 2: {'; '.join(said)}.")


def _estimation(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The layers at the first threshold, the shallowest first."""
    numbers = document["numbers"]
    tau = numbers["tau"][0]
    return sorted(
        (each for each in numbers["estimation"] if each["tau"] == tau),
        key=lambda e: int(e["layer"]),
    )


def _ranked(document: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Layer -> difference in ROC-AUC, at the layers of the settings where there is one."""
    numbers = document["numbers"]
    return {
        int(each["layer"]): each["difference"]
        for each in numbers["auc"]
        if each["layer"] in numbers["layers"] and each["difference"] is not None
    }


def _intervals(gains: Mapping[int, Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [(g["low"], g["high"]) for g in gains.values() if g["low"] is not None]


def _in_hundredths(judged: Judged) -> Judged:
    """Correlations and AUCs are no scores: their intervals are not in points."""
    test = judged.test.replace(", in points", ", in hundredths")
    return Judged(judged.holds, test, judged.numbers)


def _correlations(numbers: Mapping[str, Any], kind: int, layer: int) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        each for each in numbers["kinds"][kind]["layers"] if each["layer"] == layer
    )
    return found


SIGNALS = {
    finding.name: finding
    for finding in (
        Finding("correctness", "At the threshold 0.2, EDR tells right answers from wrong ones "
                "better than entropy.",
                ("correctness",), knows_better),
        Finding("ranking", "The same without a threshold (our measure, ROC-AUC): EDR knows right "
                "answers better.", ("correctness",), ranks_better),
        Finding("shallow", "EDR knows better most of all at shallow layers.", ("correctness",),
                most_when_shallow),
        Finding("one-rate-ranking", "With one rate for encoder and heads, EDR knows right answers "
                "better (ROC-AUC).", ("one-rate-correctness",),
                partial(ranks_better, item="one-rate-correctness")),
        Finding("one-rate-shallow", "With one rate, EDR knows better most of all at shallow "
                "layers.", ("one-rate-correctness",),
                partial(most_when_shallow, item="one-rate-correctness")),
        Finding("correlation", "Prototypical networks lower the correlation of entropy and "
                "distance ratio.", ("homogeneity",), networks_decorrelate),
    )
}  # fmt: skip
