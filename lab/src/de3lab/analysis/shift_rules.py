"""Which exit rule a label stands for, and what it gives on each of its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from de3bert.errors import UsageError
from de3bert.exits.curve import ROUNDING, Curve, curve
from de3bert.exits.family import Family
from de3bert.exits.policy import Policy
from de3bert.methods import METHODS
from de3lab.analysis.subject import Subject

__all__ = ["Seen", "ShiftRule", "read_rule", "rule_of"]

# Of a bandit: finer than elsewhere, and further, because its speeds are to meet those asked for.
MUS = tuple(round(0.05 * step, 2) for step in (*range(20), *range(20, 41, 2)))


class Seen(NamedTuple):
    """A rule at one speed.

    Attributes:
        runs: layer speed-up and score of every run.
        policy: where the rule has speeds of its own, the one that was taken.
    """

    runs: list[tuple[float, float]]
    policy: Policy | None = None


@dataclass(frozen=True)
class ShiftRule:
    """One label's exit rule on every run of its kind.

    Attributes:
        families: the policy family of each run; they differ in lambda at most.
        curves: what it gives on the rows, one for each run.
    """

    families: list[Family]
    curves: list[Curve]

    @property
    def has_own_speeds(self) -> bool:
        """A bandit has the speeds that its values of mu lead to, and a model without exits one."""
        return self.families[0].kind == "bandit" or len(self.curves[0]) == 1

    def members(self) -> dict[float, list[tuple[float, float]]]:
        """The number of each member (mu) -> layer speed-up and score of every run."""
        found = {}
        for number in sorted(self.curves[0].thresholds.tolist()):
            places = [each.thresholds.tolist().index(number) for each in self.curves]
            at = zip(self.curves, places, strict=True)
            found[number] = [(float(c.layer_speedup[i]), float(c.score[i])) for c, i in at]
        return found

    def at(self, speeds: Sequence[float]) -> Seen | None:
        """The rule at the speed of each run; None when it does not reach one of them.

        A rule with speeds of its own gives the member nearest to the mean of them, for all runs
        the same. Speeds need no labels, so nothing is chosen by its score.
        """
        if self.has_own_speeds:
            wanted, members = float(np.mean(speeds)), self.members()
            best = min(members, key=lambda number: _apart(members[number], wanted))
            return Seen(members[best], self.families[0].policy(best))
        pairs = list(zip(self.curves, speeds, strict=True))
        if not all(_reaches(each, speed) for each, speed in pairs):
            return None
        return Seen([(speed, each.at(speed)) for each, speed in pairs])


def read_rule(group: Sequence[Subject], lambdas: Sequence[float] | None, metric: str) -> ShiftRule:
    """The rule of one label on all its runs."""
    families = [rule_of(subject, lambdas) for subject in group]
    traces = [
        subject.with_distances if family.signal and family.signal.needs_distances
        else subject.labelled
        for subject, family in zip(group, families, strict=True)
    ]  # fmt: skip
    both = zip(traces, families, strict=True)
    return ShiftRule(families, [curve(trace, family, metric) for trace, family in both])


def rule_of(subject: Subject, lambdas: Sequence[float] | None = None) -> Family:
    """The exit rule of a subject: that of the method its label names, else of its own method.

    So one jointly trained model is `joint-entropy` and `ceebert`. Where a method has several
    families its first is taken, and lambda is the model's own: to choose either takes labels,
    which data of another kind does not have.
    """
    name = subject.label if subject.label in METHODS else subject.method
    if name not in METHODS:
        raise UsageError(
            f"{subject.path} does not say how it was trained, so its rule is not known. Label it "
            "with the name of a method: de3=PATH"
        )
    method = METHODS[name]
    if method.finish is not None and subject.method != name:
        raise UsageError(
            f"{subject.path} ({subject.method}) is to be read as {name}, which needs "
            f"{method.finish} fitted on calibration rows. Train a model by the method {name}."
        )
    family = Family.parse(method.families[0])
    if family.kind == "bandit" and len(family.mus) > 1:
        return replace(family, mus=MUS)
    if family.signal is None or family.signal.name != "edr":
        return family
    if lambdas is not None and len(lambdas) != 1:
        raise UsageError(
            f"`shift` takes one --lambda for all, got {len(lambdas)}: the best of several could "
            "only be chosen by labels."
        )
    weight = lambdas[0] if lambdas else subject.options.get("lambda", 1.0)
    return Family.parse(f"edr(lambda={float(weight)!r})")


def _reaches(each: Curve, speed: float) -> bool:
    low, high = float(each.layer_speedup[0]), float(each.layer_speedup[-1])
    return low - ROUNDING <= speed <= high + ROUNDING


def _apart(runs: Sequence[tuple[float, float]], wanted: float) -> float:
    """How far speeds lie from the one wanted, as a ratio: 2x and 8x are equally far from 4x."""
    return abs(math.log(float(np.mean([speed for speed, _ in runs])) / wanted))
