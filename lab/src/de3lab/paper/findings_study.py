"""Findings about methods compared in studies: the main table, students, other encoders, Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from de3lab.paper.judging import (
    ENOUGH,
    Holds,
    Judged,
    Sample,
    above,
    count_of,
    not_below,
    points,
    weakest,
)
from de3lab.paper.names import listed
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict, unmeasured, verdict
from de3lab.statistics import SIGNIFICANCE, holm

__all__ = ["STUDIES", "study_sample"]

Rivals = Mapping[str, Mapping[str, str]]  # shown name -> speed -> the method at that speed
BOTH = ("2", "3")


def _at_both(*methods: str) -> dict[str, dict[str, str]]:
    return {method: dict.fromkeys(BOTH, method) for method in methods}


RULES: Rivals = {
    "fixed depth": {"2": "layers-6", "3": "layers-4"},
    **_at_both("deebert", "pabee", "berxit", "pcee"),
}
STUDENTS: Rivals = {name: {"2": name} for name in ("distilbert", "pd", "pkd", "theseus")}
ELSEWHERE: Rivals = {
    "fixed depth": {"3": "layers-2"},
    **{name: {"3": name} for name in ("deebert", "pabee", "gpfee")},
}


def study_sample(
    document: Mapping[str, Any], ours: str, theirs: Mapping[str, str]
) -> tuple[Sample, list[str]]:
    """ours - theirs of every task and seed that both have, the mean over the speeds; and tasks."""
    values, tasks = [], []
    for task in (each["name"] for each in document["tasks"]):
        by_seed: dict[str, list[float]] = {}
        for speed, other in theirs.items():
            scores = document["scores"].get(speed, {}).get(task, {})
            if ours in scores and other in scores:
                first, second = scores[ours]["values"], scores[other]["values"]
                for seed in (seed for seed in first if seed in second):
                    by_seed.setdefault(seed, []).append(first[seed] - second[seed])
        values += [float(np.mean(seen)) for seen in by_seed.values()]
        tasks += [task] if by_seed else []
    return Sample(values), tasks


def above_rules(stored: Stored) -> Verdict:
    return _above_all(stored, "paper_methods", "methods", RULES, "(mean of 2x and 3x)")


def above_students(stored: Stored) -> Verdict:
    return _above_all(stored, "paper_distillation", "distillation", STUDENTS, "at 2x")


def above_elsewhere(stored: Stored) -> Verdict:
    return _above_all(stored, "paper_minilm", "backbone", ELSEWHERE, "at 3x")


def above_in_chinese(stored: Stored) -> Verdict:
    rivals = {"gpfee": {"3": "gpfee"}}
    return _above_all(stored, "paper_chinese", "chinese", rivals, "at 3x")


def level_with_others(stored: Stored) -> Verdict:
    """Not more than a point below GPFEE and LeeBERT, which improve exits, not rules."""
    document = stored.study("paper_methods")
    if document is None:
        return unmeasured("methods")
    judged, said = [], []
    for name, at in _at_both("gpfee", "leebert").items():
        sample, _ = study_sample(document, "de3", at)
        judged.append(not_below(sample))
        if sample:
            said.append(f"{name} {100 * sample.mean:+.2f}")
    if not said:
        return unmeasured("methods")
    worst = weakest([each for each in judged if each.holds != "not measured"])
    return verdict(worst, f"DE3 less others (mean of 2x and 3x), in points: {', '.join(said)}.")


def above_cosee(stored: Stored) -> Verdict:
    """DE-COSEE less COSEE."""
    document = stored.study("paper_methods")
    found = (
        None if document is None else study_sample(document, "de-cosee", _at_both("cosee")["cosee"])
    )
    if found is None or not found[0]:
        return unmeasured("methods")
    sample, tasks = found
    said = f"DE-COSEE less COSEE {points(sample.mean)} (mean of 2x and 3x, {listed(tasks)})."
    return verdict(above(sample), said)


def _above_all(stored: Stored, study: str, item: str, rivals: Rivals, where: str) -> Verdict:
    """DE3 above each of several, with Holm's correction over them."""
    document = stored.study(study)
    if document is None:
        return unmeasured(item)
    samples = {name: study_sample(document, "de3", at) for name, at in rivals.items()}
    known = {name: sample for name, (sample, _) in samples.items() if sample}
    if not known:
        return unmeasured(item)
    tasks = dict.fromkeys(task for name in known for task in samples[name][1])
    said = ", ".join(f"{name} {100 * sample.mean:+.2f}" for name, sample in known.items())
    judged = _together({name: above(sample) for name, sample in known.items()})
    return verdict(judged, f"DE3 less others {where}, in points: {said} ({listed(tasks)}).")


def _together(judged: Mapping[str, Judged]) -> Judged:
    """One answer of several tests: yes when all say so, no when one says the contrary."""
    p = {name: each.numbers.get("p") for name, each in judged.items()}
    higher, lower = holm(p), holm({n: None if v is None else 1 - v for n, v in p.items()})
    numbers = {name: {**each.numbers, "p_holm": higher[name]} for name, each in judged.items()}
    holds: Holds = "not significant"
    if all(value is not None and value < SIGNIFICANCE for value in higher.values()):
        holds = "yes"
    elif any(value is not None and value < SIGNIFICANCE for value in lower.values()):
        holds = "no"
    tested = {name: value for name, value in higher.items() if value is not None}
    counts = sorted({int(each.numbers.get("n", 0)) for each in judged.values()})
    if not tested:
        return Judged(
            holds, f"no test: {count_of(counts[-1])} of each, {ENOUGH} are needed", numbers
        )
    listed_p = ", ".join(f"{name} {value:.2g}" for name, value in tested.items())
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    test = f"one-tailed paired t-tests over {runs} runs (task and seed), p by Holm: {listed_p}"
    return Judged(holds, test, numbers)


STUDIES = {
    finding.name: finding
    for finding in (
        Finding("rules", "DE3 is above the other exit rules at 2x and 3x.", ("methods",),
                above_rules),
        Finding("others", "DE3 is level with GPFEE and LeeBERT or above.", ("methods",),
                level_with_others),
        Finding("cosee", "With COSEE's training, DE3's exit rule is above COSEE's.", ("methods",),
                above_cosee),
        Finding("students", "DE3 at 2x is above distilled students of half the layers.",
                ("distillation",), above_students),
        Finding("backbone", "It holds for a second encoder: DE3 is above the others at 3x.",
                ("backbone",), above_elsewhere),
        Finding("chinese", "It holds for Chinese: DE3 is above GPFEE at 3x.", ("chinese",),
                above_in_chinese),
    )
}  # fmt: skip
