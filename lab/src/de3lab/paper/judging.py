"""When a finding holds: stated tests over runs, both ways.

A run is a pair of task and seed. With three of them or more, a one-tailed t-test over their
differences decides, for the claim and against it. With fewer there is no verdict: intervals over
rows are told, which say how other rows would be scored and nothing about other seeds. Layers,
speeds and thresholds of one model are not independent samples, and nothing is tested over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from de3lab.statistics import SIGNIFICANCE, one_sample_test

__all__ = [
    "ENOUGH",
    "MARGIN",
    "RULES",
    "Holds",
    "Sample",
    "Verdict",
    "above",
    "by_construction",
    "count_of",
    "decided",
    "in_hundredths",
    "level_with",
    "not_below",
    "not_measured",
    "points",
    "too_few",
    "unmeasured",
    "weakest",
]

Holds = Literal["yes", "no", "not significant", "too few runs", "by construction", "not measured"]
Interval = tuple[float, float]
ENOUGH = 3  # runs for a t-test
MARGIN = 0.01  # one point: what is nearer counts as level
RULES: Mapping[Holds, str] = {
    "yes": f"the stated test says so: one-tailed p < {SIGNIFICANCE:g}, against several rivals for "
    "each of them and Holm-corrected; or the stated 95 % interval lies wholly on its side.",
    "no": "the same test says the contrary: the p of the opposite direction is "
    f"< {SIGNIFICANCE:g}, against several rivals for one of them, Holm-corrected; or the interval "
    "lies wholly on the other side. A claim to be level, or not below, fails when it is off by "
    "surely more than a point.",
    "not significant": "the test says neither.",
    "too few runs": f"there are fewer than {ENOUGH} runs, and so no test over them. Intervals over "
    "rows stand beside, which tell nothing of other seeds.",
    "by construction": "it follows from how things are defined or counted and could not have come "
    "out otherwise, so that it is not counted among what holds.",
    "not measured": "nothing is stored yet.",
}


@dataclass(frozen=True)
class Sample:
    """Differences, one for each run, and intervals over rows, one for each task that has them."""

    values: Sequence[float]
    intervals: Sequence[Interval] = ()

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    def __bool__(self) -> bool:
        return bool(self.values)


@dataclass(frozen=True)
class Verdict:
    """What became of a finding here.

    Attributes:
        holds: one of `RULES`.
        test: which test decided, over how many runs, with its p-value or interval.
        numbers: the same for a program.
        statement: what was found here, in numbers.
    """

    holds: Holds
    test: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    statement: str = ""

    def saying(self, statement: str) -> Verdict:
        return replace(self, statement=statement)


def above(sample: Sample) -> Verdict:
    """Whether the differences are above 0: yes, no (below 0), or not significant."""
    if not sample:
        return not_measured()
    if len(sample.values) < ENOUGH:
        return too_few(sample)
    test = one_sample_test(sample.values)
    if test is None:
        return _no_spread(sample)
    holds = decided(yes=test["p"] < SIGNIFICANCE, no=1 - test["p"] < SIGNIFICANCE)
    return Verdict(holds, f"one-tailed paired t-test over {_runs(test)}: {_both(test)}", test)


def not_below(sample: Sample, margin: float = MARGIN) -> Verdict:
    """Whether the differences are not more than a margin below 0: a test of non-inferiority.

    No means more than the margin below, by the same test; below 0 alone is not enough.
    """
    if not sample:
        return not_measured()
    if len(sample.values) < ENOUGH:
        return too_few(sample)
    test = one_sample_test([value + margin for value in sample.values])
    if test is None:
        return _no_spread(sample)
    holds = decided(yes=test["p"] < SIGNIFICANCE, no=1 - test["p"] < SIGNIFICANCE)
    said = f"one-tailed t-test of not more than {_points(margin)} below over {_runs(test)}"
    more = f"p = {test['p']:.2g}, of more than that below {1 - test['p']:.2g}"
    return Verdict(holds, f"{said}: {more}", {**test, "mean": sample.mean, "margin": margin})


def level_with(sample: Sample, margin: float = MARGIN) -> Verdict:
    """Whether the differences are within a margin of 0: two one-tailed tests (TOST).

    No means beyond the margin on one side; a sure but small difference is not enough.
    """
    if not sample:
        return not_measured()
    if len(sample.values) < ENOUGH:
        return too_few(sample)
    low = one_sample_test([value + margin for value in sample.values])
    high = one_sample_test([margin - value for value in sample.values])
    plain = one_sample_test(sample.values)
    if low is None or high is None or plain is None:
        return _no_spread(sample)
    p, beyond = max(low["p"], high["p"]), min(1.0, 2 * min(1 - low["p"], 1 - high["p"]))
    holds = decided(yes=p < SIGNIFICANCE, no=beyond < SIGNIFICANCE)
    said = f"two one-tailed t-tests of within {_points(margin)} over {_runs(plain)}"
    return Verdict(
        holds,
        f"{said}: p = {p:.2g}, of beyond it {beyond:.2g}",
        {**plain, "p": p, "margin": margin},
    )


def too_few(sample: Sample) -> Verdict:
    """No verdict; what other rows would say is told."""
    said = f"no test: {count_of(len(sample.values))}, {ENOUGH} are needed"
    if sample.intervals:
        ends = ", ".join(f"[{100 * low:+.2f}, {100 * high:+.2f}]" for low, high in sample.intervals)
        said += f"; 95 % intervals over rows, in points: {ends}"
    numbers: dict[str, Any] = {"n": len(sample.values), "mean": sample.mean}
    if sample.intervals:
        numbers["intervals"] = [list(each) for each in sample.intervals]
    return Verdict("too few runs", said, numbers)


def by_construction(is_so: bool, why: str, numbers: Mapping[str, Any]) -> Verdict:
    """What cannot come out otherwise; no where it does all the same."""
    return Verdict("by construction" if is_so else "no", why, numbers)


def not_measured() -> Verdict:
    return Verdict("not measured", "", {"n": 0})


def unmeasured(item: str) -> Verdict:
    """Nothing is stored yet."""
    return not_measured().saying(f"`de3 paper run {item}` measures it.")


def decided(yes: bool, no: bool) -> Holds:
    """The answer of a test that can say either, or neither."""
    if yes:
        return "yes"
    return "no" if no else "not significant"


def in_hundredths(judged: Verdict) -> Verdict:
    """Correlations and AUCs are no scores: their intervals are not in points."""
    return replace(judged, test=judged.test.replace(", in points", ", in hundredths"))


def weakest(judged: Sequence[Verdict]) -> Verdict:
    """The one that decides for all: no before too few runs, not significant and yes."""
    order = ("not measured", "no", "too few runs", "not significant", "by construction", "yes")
    return min(judged, key=lambda each: order.index(each.holds))


def points(share: float) -> str:
    """A difference of scores as `+1.25 points`."""
    return f"{100 * share:+.2f} points"


def _no_spread(sample: Sample) -> Verdict:
    said = f"no test: all {len(sample.values)} runs differ by the same"
    return Verdict("not significant", said, {"n": len(sample.values), "mean": sample.mean})


def _runs(test: Mapping[str, Any]) -> str:
    return f"{test['n']} runs (task and seed)"


def count_of(runs: int) -> str:
    """`1 run` or `3 runs`."""
    return "1 run" if runs == 1 else f"{runs} runs"


def _both(test: Mapping[str, Any]) -> str:
    """The p-values of both directions; the second is what a no rests on."""
    return f"p = {test['p']:.2g} for above, {1 - test['p']:.2g} for below"


def _points(share: float) -> str:
    return f"{100 * share:g} point" + ("" if share == MARGIN else "s")
