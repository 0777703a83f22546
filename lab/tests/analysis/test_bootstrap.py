"""Resampled curves against the slow way: take the drawn rows and make the curve anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from lab.tests.analysis.toys import toy_trace
from tests.exits.traces import small_traces

from de3bert.exits.curve import curve
from de3bert.exits.family import Family
from de3lab.analysis.bootstrap import resampled_scores
from de3lab.statistics import percentile_interval


def slowly(trace, family, speeds, metric, resamples, seed):
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(resamples):
        drawn = curve(trace.take(chance.integers(trace.rows, size=trace.rows)), family, metric)
        found.append([drawn.at(speed) for speed in speeds])
    return np.asarray(found)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "matthews"])
@pytest.mark.parametrize("family", ["entropy", "edr(lambda=2.0)", "max_probability", "entropy x 2"])
def test_the_same_as_curves_of_the_drawn_rows(family, metric):
    trace = toy_trace(rows=60, classes=3)
    speeds = [1.0, 1.37, 2.0, 3.0]
    found = resampled_scores(trace, Family.parse(family), speeds, metric, resamples=15, seed=4)
    assert found.shape == (15, 4)
    np.testing.assert_allclose(found, slowly(trace, family, speeds, metric, 15, 4), atol=1e-12)


def test_with_ties_and_f1():
    trace = toy_trace(rows=80)
    tied = replace(trace, logits=np.round(trace.logits), distances=np.round(trace.distances, 1))
    speeds = [1.2, 2.5, 6.0]
    found = resampled_scores(tied, Family.parse("edr"), speeds, "f1", resamples=20, seed=1)
    np.testing.assert_allclose(found, slowly(tied, "edr", speeds, "f1", 20, 1), atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(trace=small_traces())
def test_on_tiny_traces(trace):
    speeds = sorted({trace.base / layer for layer in (trace.exit_layers[0], trace.depth)})
    found = resampled_scores(trace, Family.parse("edr"), speeds, "accuracy", resamples=5, seed=2)
    np.testing.assert_allclose(found, slowly(trace, "edr", speeds, "accuracy", 5, 2), atol=1e-12)


def test_speeds_refer_to_the_backbone():
    trace = toy_trace(rows=50)
    cut = replace(trace, base_depth=12)
    family = Family.parse("entropy")
    np.testing.assert_array_equal(
        resampled_scores(cut, family, [4.0, 6.0], "accuracy", 10),
        resampled_scores(trace, family, [2.0, 3.0], "accuracy", 10),
    )


def test_draws_depend_on_the_seed_alone():
    trace = toy_trace(rows=50)
    family = Family.parse("entropy")
    again = [resampled_scores(trace, family, [2.0], "accuracy", 10, seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(again[0], again[1])
    assert (again[0] != again[2]).any()


def test_the_interval_holds_the_middle():
    values = np.arange(1001.0)
    assert percentile_interval(values) == pytest.approx((25.0, 975.0))
    assert percentile_interval(values, level=0.5) == pytest.approx((250.0, 750.0))
