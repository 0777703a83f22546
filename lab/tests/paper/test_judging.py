"""The tests behind verdicts: against scipy, against slow versions, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from de3lab.paper.judging import Sample, Verdict, above, level_with, not_below, weakest

CLEAR = [0.02, 0.03, 0.025, 0.022]


def test_above_is_the_one_tailed_t_test():
    judged = above(Sample(CLEAR))
    expected = stats.ttest_1samp(CLEAR, 0, alternative="greater")
    assert judged.numbers["p"] == pytest.approx(expected.pvalue)
    assert judged.numbers["n"] == 4
    assert judged.holds == "yes"
    assert "one-tailed paired t-test over 4 runs" in judged.test


def test_the_other_direction_is_a_no_and_noise_is_neither():
    assert above(Sample([-value for value in CLEAR])).holds == "no"
    assert above(Sample([0.02, -0.03, 0.025, -0.022])).holds == "not significant"
    assert above(Sample([])).holds == "not measured"


def test_few_runs_go_by_intervals_over_rows():
    assert above(Sample([0.02], [(0.01, 0.03)])).holds == "yes"
    assert above(Sample([0.02, 0.01], [(0.01, 0.03), (-0.01, 0.03)])).holds == "not significant"
    assert above(Sample([-0.02], [(-0.03, -0.01)])).holds == "no"
    judged = above(Sample([0.02], [(0.01, 0.03)]))
    assert "[+1.00, +3.00]" in judged.test
    assert "1 run" in judged.test


def test_nothing_is_claimed_from_one_run_without_an_interval():
    for judge in (above, level_with, not_below):
        for value in (-0.5, 0.0, 0.5):
            judged = judge(Sample([value]))
            assert judged.holds == "not significant"
            assert judged.test.startswith("no test: 1 run")


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
    assert not_below(Sample([0.1], [(0.05, 0.2)])).holds == "yes"
    assert not_below(Sample([-0.1], [(-0.2, -0.05)])).holds == "no"
    assert not_below(Sample([-0.01], [(-0.2, 0.05)])).holds == "not significant"
    # Surely below 0, but perhaps by less than a point.
    assert not_below(Sample([-0.011, -0.0085, -0.0105, -0.009])).holds == "not significant"
    assert not_below(Sample([-0.008], [(-0.015, -0.001)])).holds == "not significant"


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
    assert level_with(Sample([0.0], [(-0.005, 0.005)])).holds == "yes"
    assert level_with(Sample([0.05], [(0.02, 0.08)])).holds == "no"
    assert level_with(Sample([0.0], [(-0.02, 0.02)])).holds == "not significant"
    assert level_with(Sample([-0.05], [(-0.08, -0.02)])).holds == "no"
    assert level_with(Sample([-0.03, -0.031, -0.029])).holds == "no"
    # Surely not 0, but perhaps by less than a point.
    assert level_with(Sample([0.011, 0.0085, 0.0105, 0.009])).holds == "not significant"
    assert level_with(Sample([0.008], [(0.001, 0.015)])).holds == "not significant"


def test_the_weakest_decides_for_all():
    kinds = ["yes", "not significant", "no"]
    judged = [Verdict(holds, "") for holds in kinds]
    assert weakest(judged).holds == "no"
    assert weakest(judged[:2]).holds == "not significant"
    assert weakest(judged[:1]).holds == "yes"
