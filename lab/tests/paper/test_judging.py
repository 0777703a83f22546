"""The tests behind verdicts: against scipy, against slow versions, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from de3lab.paper.judging import (
    RULES,
    Sample,
    Verdict,
    above,
    by_construction,
    level_with,
    not_below,
    weakest,
)

CLEAR = [0.02, 0.03, 0.025, 0.022]


def test_above_is_the_one_tailed_t_test():
    judged = above(Sample(CLEAR))
    expected = stats.ttest_1samp(CLEAR, 0, alternative="greater")
    assert judged.numbers["p"] == pytest.approx(expected.pvalue)
    assert judged.numbers["n"] == 4
    assert judged.holds == "yes"
    assert "one-tailed paired t-test over 4 runs" in judged.test
    p = expected.pvalue  # and that of the other direction, by which a no would be decided
    assert judged.test.endswith(f": p = {p:.2g} for above, {1 - p:.2g} for below")


def test_the_other_direction_is_a_no_and_noise_is_neither():
    assert above(Sample([-value for value in CLEAR])).holds == "no"
    assert above(Sample([0.02, -0.03, 0.025, -0.022])).holds == "not significant"
    assert above(Sample([])).holds == "not measured"


@pytest.mark.parametrize("judge", [above, level_with, not_below])
def test_few_runs_are_a_verdict_of_their_own(judge):
    """However clear they look: intervals over rows say nothing about other seeds."""
    for values in ([-0.5], [0.0], [0.5], [0.5, 0.6]):
        sure = [(value - 0.001, value + 0.001) for value in values]
        for intervals in ((), sure):
            judged = judge(Sample(values, intervals))
            assert judged.holds == "too few runs"
            assert judged.test.startswith(f"no test: {len(values)} run")
    judged = judge(Sample([0.02], [(0.01, 0.03)]))
    assert judged.test == (
        "no test: 1 run, 3 are needed; 95 % intervals over rows, in points: [+1.00, +3.00]"
    )
    assert judged.numbers == {"n": 1, "mean": 0.02, "intervals": [[0.01, 0.03]]}


def test_what_cannot_come_out_otherwise_does_not_count_as_holding():
    assert by_construction(True, "why", {}).holds == "by construction"
    assert by_construction(False, "why", {}).holds == "no"


def test_every_verdict_has_a_stated_rule():
    assert list(RULES) == [
        "yes", "no", "not significant", "too few runs", "by construction", "not measured",
    ]  # fmt: skip
    assert "the p of the opposite direction is < 0.05" in RULES["no"]


def test_three_runs_that_agree_to_the_last_bit_are_no_test():
    for judge in (above, level_with, not_below):
        judged = judge(Sample([0.02, 0.02, 0.02]))
        assert judged.holds == "not significant"
        assert "all 3 runs differ by the same" in judged.test


def test_not_below_allows_a_point():
    slightly = [-0.003, -0.001, -0.004, -0.002]
    assert above(Sample(slightly)).holds == "no"
    judged = not_below(Sample(slightly))
    expected = stats.ttest_1samp(np.array(slightly) + 0.01, 0, alternative="greater")
    assert judged.numbers["p"] == pytest.approx(expected.pvalue)
    assert judged.holds == "yes"
    assert not_below(Sample([-0.03, -0.02, -0.025])).holds == "no"
    assert not_below(Sample([-0.03, 0.02, -0.025])).holds == "not significant"
    # Surely below 0, but perhaps by less than a point.
    assert not_below(Sample([-0.011, -0.0085, -0.0105, -0.009])).holds == "not significant"


def test_level_with_needs_both_sides():
    near = [0.001, -0.002, 0.0015, 0.0]
    judged = level_with(Sample(near))
    both = [
        stats.ttest_1samp(np.array(near) + 0.01, 0, alternative="greater").pvalue,
        stats.ttest_1samp(np.array(near) - 0.01, 0, alternative="less").pvalue,
    ]
    assert judged.numbers["p"] == pytest.approx(max(both))
    assert judged.holds == "yes"
    assert level_with(Sample([0.03, 0.031, 0.029])).holds == "no"
    assert level_with(Sample([0.03, -0.031, 0.009])).holds == "not significant"
    assert level_with(Sample([-0.03, -0.031, -0.029])).holds == "no"
    # Surely not 0, but perhaps by less than a point.
    assert level_with(Sample([0.011, 0.0085, 0.0105, 0.009])).holds == "not significant"


def test_the_weakest_decides_for_all():
    kinds = ["yes", "not significant", "too few runs", "no"]
    judged = [Verdict(holds, "") for holds in kinds]
    assert weakest(judged).holds == "no"
    assert weakest(judged[:3]).holds == "too few runs"
    assert weakest(judged[:2]).holds == "not significant"
    assert weakest(judged[:1]).holds == "yes"
