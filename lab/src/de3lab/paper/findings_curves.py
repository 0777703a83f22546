"""Findings about trade-off curves: distance ratio, parts of DE3, forms of DAR, adjustment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from de3lab.paper.judging import Sample, above, level_with, points, weakest
from de3lab.paper.names import listed, task_name
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict, unmeasured, verdict

__all__ = ["CURVES"]

SPEEDS = ("2", "3")  # the paper's
FORMS = (("de3", "v2"), ("de3", "v3"), ("v2", "v3"))
Results = Mapping[str, Mapping[str, Any]]
Pair = Mapping[str, Any]


def above_entropy(stored: Stored, item: str = "indicator") -> Verdict:
    """EDR less entropy on the same models, the mean of 2x and 3x."""
    return _judged(stored, item, "EDR", "entropy")


def growing(stored: Stored, item: str = "indicator") -> Verdict:
    """How much more EDR gives at the highest speed than at the lowest."""
    results = stored.results(item)
    pairs = {task: _pair(doc, "EDR", "entropy") for task, doc in results.items()}
    grown = {task: pair["growth"] for task, pair in pairs.items() if pair and pair["growth"]}
    if not grown:
        return unmeasured(item)
    sample = Sample(
        [value for seen in grown.values() for value in seen["values"]],
        [_interval(seen["over_rows"]) for seen in grown.values()],
    )
    said = "; ".join(
        f"{task_name(task)} {points(seen['mean'])} from {seen['from']:g}x to {seen['to']:g}x"
        for task, seen in grown.items()
    )
    return verdict(above(sample), f"The gain over entropy grows by {said}.")


def networks_help(stored: Stored) -> Verdict:
    return _judged(stored, "components", "de3", "w/o PN")


def regulariser_helps(stored: Stored) -> Verdict:
    return _judged(stored, "components", "w/o PN", "w/o PN w/o DAR")


def forms_are_level(stored: Stored) -> Verdict:
    """Every pair of forms within one point, the mean of 2x and 3x."""
    results = stored.results("dar-forms")
    found = {pair: _sample(results, *pair) for pair in FORMS}
    if not all(sample for sample, _ in found.values()):
        return unmeasured("dar-forms")
    judged = [level_with(sample) for sample, _ in found.values()]
    said = "; ".join(f"{a} less {b} {points(found[a, b][0].mean)}" for a, b in found)
    worst, tasks = weakest(judged), found[FORMS[0]][1]
    return Verdict(
        worst.holds,
        f"{said} (mean of 2x and 3x, {listed(tasks)}).",
        f"each pair {worst.test}; the weakest of three is given",
        {"pairs": [dict(each.numbers) for each in judged]},
    )


def adjustment_helps(stored: Stored) -> Verdict:
    return _shifted(stored, "de3", "the same models without it")


def adjusted_above_bandit(stored: Stored) -> Verdict:
    return _shifted(stored, "ceebert", "CeeBERT at the same layer speed-up")


def _shifted(stored: Stored, other: str, named: str) -> Verdict:
    """DE3 with adjusted prototypes less another rule on shifted data, the mean of 2x and 3x."""
    values: list[float] = []
    tasks: list[str] = []
    by_speed: dict[str, list[float]] = {speed: [] for speed in SPEEDS}
    for task, document in stored.results("shift").items():
        at = document["numbers"]["at"]
        gains = {speed: _gains(at.get(speed, {}), other) for speed in SPEEDS}
        known = [each for each in gains.values() if each]
        if known:
            values += np.mean(known, axis=0).tolist()
            tasks.append(task)
            for speed, each in gains.items():
                by_speed[speed] += each
    if not values:
        return unmeasured("shift")
    said = ", ".join(f"{points(float(np.mean(v)))} at {s}x" for s, v in by_speed.items() if v)
    return verdict(
        above(Sample(values)), f"With adjusted prototypes {said} to {named} ({listed(tasks)})."
    )


def _gains(seen: Mapping[str, Any], other: str) -> list[float]:
    ours, theirs = seen.get("de3 adapted"), seen.get(other)
    if ours is None or theirs is None:
        return []
    both = zip(ours["score"]["values"], theirs["score"]["values"], strict=True)
    return [a - b for a, b in both]


def _judged(stored: Stored, item: str, ours: str, theirs: str) -> Verdict:
    results = stored.results(item)
    sample, tasks = _sample(results, ours, theirs)
    if not sample:
        return unmeasured(item)
    means = ", ".join(
        f"{points(float(np.mean(values)))} at {speed}x"
        for speed, values in _by_speed(results, ours, theirs).items()
    )
    names = {"EDR": "EDR", "de3": "DE3"}
    said = f"{names.get(ours, ours)} less {theirs}: {means} ({listed(tasks)})."
    return verdict(above(sample), said)


def _sample(results: Results, ours: str, theirs: str) -> tuple[Sample, list[str]]:
    """The mean difference over the speeds of each run, the intervals, and the tasks there are."""
    values: list[float] = []
    intervals, tasks = [], []
    for task, document in results.items():
        pair = _pair(document, ours, theirs)
        seen = [pair["at"][speed] for speed in SPEEDS if pair and speed in pair["at"]]
        if seen:
            values += np.mean([each["values"] for each in seen], axis=0).tolist()
            intervals += [_interval(each["over_rows"]) for each in seen]
            tasks.append(task)
    return Sample(values, intervals), tasks


def _by_speed(results: Results, ours: str, theirs: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for document in results.values():
        pair = _pair(document, ours, theirs)
        for speed in SPEEDS:
            if pair and speed in pair["at"]:
                found.setdefault(speed, []).extend(pair["at"][speed]["values"])
    return found


def _pair(document: Mapping[str, Any], ours: str, theirs: str) -> Pair | None:
    """The comparison of two labels; that of EDR has its lambda in the label."""
    for pair in document["numbers"]["differences"]:
        mine = pair["ours"].startswith("EDR") if ours == "EDR" else pair["ours"] == ours
        if mine and pair["theirs"] == theirs:
            found: Pair = pair
            return found
    return None


def _interval(ends: Sequence[float]) -> tuple[float, float]:
    return float(ends[0]), float(ends[1])


def _finding(name: str, claim: str, judge: Callable[[Stored], Verdict], *items: str) -> Finding:
    return Finding(name, claim, items, judge)


CURVES = {
    finding.name: finding
    for finding in (
        _finding("entropy", "EDR gives a better trade-off than entropy on the same model.",
                 above_entropy, "indicator"),
        _finding("growing", "The gain over entropy grows with the layer speed-up.",
                 growing, "indicator"),
        _finding("one-rate", "EDR is above entropy when heads learn at the encoder's rate, as the "
                 "paper trains.", partial(above_entropy, item="one-rate"), "one-rate"),
        _finding("one-rate-growing", "With one rate, the gain over entropy grows with the layer "
                 "speed-up.", partial(growing, item="one-rate"), "one-rate"),
        _finding("networks", "Prototypical networks help.", networks_help, "components"),
        _finding("regulariser", "The distance-aware regulariser helps.",
                 regulariser_helps, "components"),
        _finding("forms", "Center, alienation and combined form of the regulariser are level.",
                 forms_are_level, "dar-forms"),
        _finding("adjustment", "Adjusting prototypes without labels helps on shifted data.",
                 adjustment_helps, "shift"),
        _finding("adjusted", "With adjusted prototypes DE3 is above CeeBERT on shifted data.",
                 adjusted_above_bandit, "shift"),
    )
}  # fmt: skip
