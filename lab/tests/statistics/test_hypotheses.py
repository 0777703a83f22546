"""Tests, corrections, ranks: against scipy, against the formulas, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from de3lab.statistics import holm, paired_test, ranks, summary


def test_summary():
    found = summary([1.0, 2.0, 4.0])
    assert found == {"mean": pytest.approx(7 / 3), "sd": pytest.approx(math.sqrt(7 / 3)), "n": 3}
    assert summary([0.5]) == {"mean": 0.5, "sd": None, "n": 1}


def test_the_paired_test_by_hand():
    # differences 1, 2, 3: mean 2, deviation 1, t = 2 / (1 / sqrt 3)
    found = paired_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], "seeds")
    assert found["difference"] == pytest.approx(2.0)
    assert found["dz"] == pytest.approx(2.0)
    assert found["t"] == pytest.approx(2 * math.sqrt(3))
    assert found["p"] == pytest.approx(stats.t.sf(2 * math.sqrt(3), df=2))
    assert found["p"] == pytest.approx(0.03709, abs=1e-5)
    assert "reason" not in found


def test_it_is_one_tailed_and_paired():
    rng = np.random.default_rng(5)
    ours, theirs = rng.normal(0.9, 0.1, 6), rng.normal(0.8, 0.1, 6)
    found = paired_test(ours, theirs, "seeds")
    assert found["p"] == pytest.approx(
        stats.ttest_1samp(ours - theirs, 0, alternative="greater").pvalue
    )
    # worse than the other: the p-value of the opposite question
    assert paired_test(theirs, ours, "seeds")["p"] == pytest.approx(1 - found["p"])


def test_two_tails_ask_for_any_difference():
    rng = np.random.default_rng(6)
    ours, theirs = rng.normal(0.9, 0.1, 6), rng.normal(0.8, 0.1, 6)
    found = paired_test(ours, theirs, "seeds", "two")
    assert found["p"] == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert paired_test(theirs, ours, "seeds", "two")["p"] == pytest.approx(found["p"])


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        ([0.9], [0.8], "at least 2 seeds, there are 1"),
        ([], [], "at least 2 seeds, there are 0"),
        ([0.9, 0.8, 0.7], [0.8, 0.7, 0.6], "same for all seeds"),
        ([0.5, 0.5], [0.5, 0.5], "same for all seeds"),
    ],
)
def test_where_there_is_no_test_there_is_a_reason(ours, theirs, reason):
    found = paired_test(ours, theirs, "seeds")
    assert (found["p"], found["t"], found["dz"]) == (None, None, None)
    assert reason in found["reason"]


def test_holm_by_hand():
    # sorted .01 .02 .03 .04, times 4 3 2 1: .04 .06 .06 .04, then never below the one before
    found = holm({"a": 0.04, "b": 0.01, "c": 0.03, "d": 0.02, "e": None})
    assert found == {
        "a": pytest.approx(0.06), "b": pytest.approx(0.04), "c": pytest.approx(0.06),
        "d": pytest.approx(0.06), "e": None,
    }  # fmt: skip
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_as_the_step_down_procedure_decides(values):
    """Rejecting where adjusted p <= level is Holm's walk from the smallest p up, for any level."""
    adjusted = holm({str(i): p for i, p in enumerate(values)})
    for level in (0.01, 0.05, 0.3):
        order = sorted(range(len(values)), key=lambda i: values[i])
        rejected = set()
        for step, i in enumerate(order):
            if min(1.0, values[i] * (len(values) - step)) > level:
                break
            rejected.add(str(i))
        assert {name for name, p in adjusted.items() if p <= level} == rejected


def test_ranks():
    found = ranks({"a": 0.9, "b": 0.7, "c": 0.9, "d": 0.1})
    assert found == {"a": 1.5, "b": 3.0, "c": 1.5, "d": 4.0}
    with pytest.raises(ValueError, match="finite"):
        ranks({"a": math.nan, "b": 1.0})
