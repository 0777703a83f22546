"""Intervals and spreads: by hand, and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from de3lab.statistics import (
    described,
    pearson,
    percentile_interval,
    pooled_sd,
    range_test,
    row_counts,
    row_draws,
    share_difference_reach,
    spearman,
)

GROUPS = [[0.80, 0.82, 0.81], [0.83, 0.86, 0.84], [0.79, 0.80, 0.83]]


def test_described_has_the_values_beside_their_summary():
    assert described([1.0, 3.0]) == {
        "mean": 2.0,
        "sd": pytest.approx(math.sqrt(2)),
        "n": 2,
        "values": [1.0, 3.0],
    }


def test_resamples_without_a_value_do_not_count():
    values = np.array([np.nan, *np.arange(101.0), np.nan])
    assert percentile_interval(values, level=0.9) == pytest.approx((5.0, 95.0))


def test_counts_are_those_of_the_draws():
    drawn = np.concatenate(list(row_draws(20, 30, seed=3)))
    counts = np.concatenate(list(row_counts(20, 30, seed=3)))
    assert (np.apply_along_axis(np.bincount, 1, drawn, minlength=20) == counts).all()


def test_the_reach_of_a_difference_of_shares():
    # sqrt((0.5 * 0.5 + 0.2 * 0.8) / 100) = 0.064031
    assert share_difference_reach(0.5, 0.2, 100) == pytest.approx(1.96 * 0.064031, abs=1e-6)
    assert share_difference_reach(1.0, 0.0, 100) == 0.0


def test_pooled_deviation_by_hand():
    # squares 2 and 0.5 about the means 2 and 4.5, over 1 + 1 degrees of freedom
    assert pooled_sd([[1.0, 3.0], [4.0, 5.0]]) == pytest.approx(math.sqrt(2.5 / 2))
    assert pooled_sd([[1.0], [2.0]]) is None


def test_the_range_test_is_tukeys():
    means = [np.mean(group) for group in GROUPS]
    found = range_test(max(means) - min(means), pooled_sd(GROUPS), groups=3, runs=3)
    assert found == pytest.approx(stats.tukey_hsd(*GROUPS).pvalue.min())
    assert range_test(0.1, None, 3, 3) is None
    assert range_test(0.1, 0.01, 3, 1) is None
    assert (range_test(0.0, 0.0, 3, 3), range_test(0.1, 0.0, 3, 3)) == (1.0, 0.0)


def test_correlations_are_scipys():
    x, y = [1.0, 2.0, 3.0, 4.0, 7.0], [1.2, 1.9, 3.5, 3.9, 6.0]
    assert pearson(x, y)["value"] == pytest.approx(stats.pearsonr(x, y).statistic)
    assert spearman(x, y[::-1]) == pytest.approx(-1.0)
    assert spearman(x, [1.0] * 5) is None
