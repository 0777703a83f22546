"""DE3 against other methods of a study, run by run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from de3lab.documents import StudyResult
from de3lab.paper.item import Item
from de3lab.paper.judging import (
    ENOUGH,
    Holds,
    Sample,
    Verdict,
    above,
    count_of,
    decided,
    unmeasured,
)
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import listed
from de3lab.statistics import SIGNIFICANCE, holm

__all__ = [
    "BOTH",
    "Rivals",
    "above_all",
    "at_speeds",
    "study_sample",
    "together",
    "without_withdrawn",
]

Rivals = Mapping[str, Mapping[str, str]]  # shown name -> speed -> the method at that speed
BOTH = ("2", "3")  # the paper's layer speed-ups


def at_speeds(*methods: str, speeds: tuple[str, ...] = BOTH) -> dict[str, dict[str, str]]:
    """The same methods at every speed."""
    return {method: dict.fromkeys(speeds, method) for method in methods}


def study_sample(
    document: StudyResult, ours: str, theirs: Mapping[str, str]
) -> tuple[Sample, list[str]]:
    """ours - theirs of every task and seed that both have, the mean over the speeds; and tasks.

    A method that is withdrawn has no part in it.
    """
    values: list[float] = []
    tasks: list[str] = []
    if {ours, *theirs.values()} & {*document.withdrawn}:
        return Sample(values), tasks
    for task in (each.name for each in document.tasks):
        by_seed: dict[str, list[float]] = {}
        for speed, other in theirs.items():
            scores = document.scores.get(speed, {}).get(task, {})
            if ours in scores and other in scores:
                first, second = scores[ours].values, scores[other].values
                for seed in (seed for seed in first if seed in second):
                    by_seed.setdefault(seed, []).append(first[seed] - second[seed])
        values += [float(np.mean(seen)) for seen in by_seed.values()]
        tasks += [task] if by_seed else []
    return Sample(values), tasks


def above_all(stored: Stored, item: Item, rivals: Rivals, where: str) -> Verdict:
    """DE3 above each of several, with Holm's correction over them."""
    assert item.training is not None
    document = stored.study(item.training.study)
    if document is None:
        return unmeasured(item.name)
    samples = {name: study_sample(document, "de3", at) for name, at in rivals.items()}
    known = {name: sample for name, (sample, _) in samples.items() if sample}
    if not known:
        return unmeasured(item.name)
    tasks = dict.fromkeys(task for name in known for task in samples[name][1])
    said = ", ".join(f"{name} {100 * sample.mean:+.2f}" for name, sample in known.items())
    judged = together({name: above(sample) for name, sample in known.items()})
    said = f"DE3 less others {where}, in points: {said} ({listed(tasks)})."
    return judged.saying(without_withdrawn(said, document, rivals))


def without_withdrawn(said: str, document: StudyResult, rivals: Iterable[str]) -> str:
    """The statement, and which of the rivals have no part in it, and why."""
    gone = {name: why for name, why in document.withdrawn.items() if name in {*rivals}}
    more = [f"{name} is withdrawn until it is trained again: {why}." for name, why in gone.items()]
    return " ".join([said, *more])


def together(judged: Mapping[str, Verdict]) -> Verdict:
    """One answer of several tests: yes when all say so, no when one says the contrary.

    Both ways p-values are Holm-corrected. While one of them has too few runs for a test, nothing
    holds.
    """
    p = {name: each.numbers.get("p") for name, each in judged.items()}
    higher, lower = holm(p), holm({n: None if v is None else 1 - v for n, v in p.items()})
    numbers = {name: {**each.numbers, "p_holm": higher[name]} for name, each in judged.items()}
    holds: Holds = decided(
        yes=all(value is not None and value < SIGNIFICANCE for value in higher.values()),
        no=any(value is not None and value < SIGNIFICANCE for value in lower.values()),
    )
    if holds != "no" and any(each.holds == "too few runs" for each in judged.values()):
        holds = "too few runs"
    tested = {name: value for name, value in higher.items() if value is not None}
    counts = sorted({int(each.numbers.get("n", 0)) for each in judged.values()})
    if not tested:
        return Verdict(
            holds, f"no test: {count_of(counts[-1])} of each, {ENOUGH} are needed", numbers
        )
    listed_p = ", ".join(
        f"{name} {value:.2g} / {lower[name]:.2g}" for name, value in tested.items()
    )
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    test = (
        f"one-tailed paired t-tests over {runs} runs (task and seed), p by Holm for above / below: "
        f"{listed_p}"
    )
    return Verdict(holds, test, numbers)
