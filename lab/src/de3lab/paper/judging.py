"""When a finding holds: stated tests over runs, or intervals over rows where runs are few.

A run is a pair of task and seed. With three of them or more, a one-tailed t-test over their
differences decides; with fewer, the 95 % intervals over rows that the analyses stored, which must
all agree. Nothing is claimed from one run without an interval.
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
    "Holds",
    "Sample",
    "Verdict",
    "above",
    "by_intervals",
    "by_trends",
    "count_of",
    "decided",
    "in_hundredths",
    "level_with",
    "not_below",
    "not_measured",
    "points",
    "unmeasured",
    "weakest",
]

Holds = Literal["yes", "no", "not significant", "not measured"]
Interval = tuple[float, float]
ENOUGH = 3  # runs for a t-test
MARGIN = 0.01  # one point: what is nearer counts as level


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
        holds: yes, no, not significant or not measured.
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
        return by_intervals(sample)
    test = one_sample_test(sample.values)
    if test is None:
        return _no_spread(sample)
    holds = decided(yes=test["p"] < SIGNIFICANCE, no=1 - test["p"] < SIGNIFICANCE)
    return Verdict(holds, f"one-tailed paired t-test over {_runs(test)}, p = {_p(test)}", test)


def not_below(sample: Sample, margin: float = MARGIN) -> Verdict:
    """Whether the differences are not more than a margin below 0: a test of non-inferiority.

    No means more than the margin below, by the same test; below 0 alone is not enough.
    """
    if not sample:
        return not_measured()
    if len(sample.values) < ENOUGH:
        return _within(sample, margin, both=False)
    test = one_sample_test([value + margin for value in sample.values])
    if test is None:
        return _no_spread(sample)
    holds = decided(yes=test["p"] < SIGNIFICANCE, no=1 - test["p"] < SIGNIFICANCE)
    said = f"one-tailed t-test of not more than {_points(margin)} below over {_runs(test)}"
    return Verdict(
        holds, f"{said}, p = {_p(test)}", {**test, "mean": sample.mean, "margin": margin}
    )


def level_with(sample: Sample, margin: float = MARGIN) -> Verdict:
    """Whether the differences are within a margin of 0: two one-tailed tests (TOST).

    No means beyond the margin on one side; a sure but small difference is not enough.
    """
    if not sample:
        return not_measured()
    if len(sample.values) < ENOUGH:
        return _within(sample, margin, both=True)
    low = one_sample_test([value + margin for value in sample.values])
    high = one_sample_test([margin - value for value in sample.values])
    plain = one_sample_test(sample.values)
    if low is None or high is None or plain is None:
        return _no_spread(sample)
    p = max(low["p"], high["p"])
    holds = decided(yes=p < SIGNIFICANCE, no=min(1 - low["p"], 1 - high["p"]) < SIGNIFICANCE / 2)
    said = f"two one-tailed t-tests of within {_points(margin)} over {_runs(plain)}, p = {p:.2g}"
    return Verdict(holds, said, {**plain, "p": p, "margin": margin})


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
    """The one that decides for all: no before not significant before yes."""
    order = ("not measured", "no", "not significant", "yes")
    return min(judged, key=lambda each: order.index(each.holds))


def by_trends(trends: Sequence[Mapping[str, Any]], what: str) -> Verdict:
    """Trend tests that the analyses stored, one for each task; all must agree."""
    known = [each for each in trends if each["p"] is not None]
    if not known:
        return Verdict("not significant", "no test: the values do not vary", {"n": len(trends)})
    holds = decided(
        yes=all(each["p"] < SIGNIFICANCE for each in known),
        no=all(1 - each["p"] < SIGNIFICANCE for each in known),
    )
    said = ", ".join(f"rho = {e['rho']:.2f}, p = {e['p']:.2g} (n = {e['n']})" for e in known)
    return Verdict(holds, f"one-tailed Spearman test that {what}: {said}", {"trends": known})


def points(share: float) -> str:
    """A difference of scores as `+1.25 points`."""
    return f"{100 * share:+.2f} points"


def by_intervals(sample: Sample) -> Verdict:
    """Whether all intervals over rows lie above 0, or all below."""
    if not sample.intervals:
        return _nothing_to_go_by(sample)
    holds = decided(
        yes=all(low > 0 for low, _ in sample.intervals),
        no=all(high < 0 for _, high in sample.intervals),
    )
    return Verdict(holds, _interval_text(sample), _interval_numbers(sample))


def _within(sample: Sample, margin: float, both: bool) -> Verdict:
    if not sample.intervals:
        return _nothing_to_go_by(sample)
    holds = decided(
        yes=all(low > -margin and (high < margin or not both) for low, high in sample.intervals),
        no=any(high < -margin or (both and low > margin) for low, high in sample.intervals),
    )
    said = f"within {_points(margin)}" if both else f"not more than {_points(margin)} below"
    return Verdict(holds, f"{said}: {_interval_text(sample)}", _interval_numbers(sample))


def _interval_text(sample: Sample) -> str:
    listed = ", ".join(f"[{100 * low:+.2f}, {100 * high:+.2f}]" for low, high in sample.intervals)
    return f"95 % intervals over rows, in points: {listed} ({count_of(len(sample.values))})"


def _interval_numbers(sample: Sample) -> dict[str, Any]:
    intervals = [list(each) for each in sample.intervals]
    return {"n": len(sample.values), "mean": sample.mean, "intervals": intervals}


def _nothing_to_go_by(sample: Sample) -> Verdict:
    said = f"no test: {count_of(len(sample.values))}, and no interval over rows"
    return Verdict("not significant", said, {"n": len(sample.values), "mean": sample.mean})


def _no_spread(sample: Sample) -> Verdict:
    said = f"no test: all {len(sample.values)} runs differ by the same"
    return Verdict("not significant", said, {"n": len(sample.values), "mean": sample.mean})


def _runs(test: Mapping[str, Any]) -> str:
    return f"{test['n']} runs (task and seed)"


def count_of(runs: int) -> str:
    """`1 run` or `3 runs`."""
    return "1 run" if runs == 1 else f"{runs} runs"


def _p(test: Mapping[str, Any]) -> str:
    return f"{test['p']:.2g}"


def _points(share: float) -> str:
    return f"{100 * share:g} point" + ("" if share == MARGIN else "s")
