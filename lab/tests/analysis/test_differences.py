"""Differences between pairs of runs: the test, the intervals, and what counts as noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from de3lab.analysis.differences import difference
from de3lab.statistics import student_interval

OURS, THEIRS = [0.80, 0.84, 0.83], [0.78, 0.79, 0.80]
AROUND = np.linspace(-0.01, 0.07, 101)
ABOVE = np.linspace(0.01, 0.05, 101)


def test_numbers_of_three_pairs():
    found = difference(OURS, THEIRS, ABOVE)
    gaps = np.subtract(OURS, THEIRS)
    assert found["values"] == pytest.approx([0.02, 0.05, 0.03])
    assert (found["mean"], found["n"]) == (pytest.approx(gaps.mean()), 3)
    assert found["sd"] == pytest.approx(gaps.std(ddof=1))
    assert found["p"] == pytest.approx(ttest_rel(OURS, THEIRS, alternative="greater").pvalue)
    ends = ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert found["over_seeds"] == pytest.approx([ends.low, ends.high])
    assert found["over_rows"] == pytest.approx(np.quantile(ABOVE, [0.025, 0.975]))


def test_one_pair_has_no_test_but_rows():
    found = difference([0.8], [0.7], ABOVE)
    assert (found["p"], found["sd"], found["over_seeds"]) == (None, None, None)
    assert found["reason"] == "a test needs at least 2 seeds, there are 1"
    assert found["beyond_noise"]


@pytest.mark.parametrize(
    ("ours", "drawn", "beyond"),
    [
        ([0.80, 0.84, 0.83], ABOVE, False),  # over three seeds 0 is within reach
        ([0.80, 0.812, 0.821], ABOVE, True),
        ([0.80, 0.812, 0.821], AROUND, False),  # other rows could turn it
        ([0.80], ABOVE, True),
        ([0.80], AROUND, False),
        ([0.76], -ABOVE, True),  # lower is a difference as well
        ([0.78], np.zeros(50), False),
    ],
)
def test_beyond_noise_means_no_interval_holds_zero(ours, drawn, beyond):
    assert difference(ours, THEIRS[: len(ours)], drawn)["beyond_noise"] is beyond


def test_rounding_is_no_difference():
    values = [0.1 + 0.2, 0.1 + 0.2]
    found = difference(values, [0.3, 0.3], np.full(9, 5e-17))
    assert not found["beyond_noise"]


def test_the_interval_of_one_value_is_unknown():
    assert student_interval([0.3]) is None
    assert student_interval([0.3, 0.3]) == pytest.approx((0.3, 0.3))
