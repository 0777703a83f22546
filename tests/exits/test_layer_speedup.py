"""Intervals of layer speed-ups: against a slow version, resampling, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.exits.traces import random_trace

from de3bert.exits import calibrate
from de3bert.exits.layer_speedup import beyond, layer_speedup, layer_speedup_interval


def slow(layers, depth, weights, groups):
    """The definition, row by row."""
    total = sum(weights)
    mean = sum(w * m for w, m in zip(weights, layers, strict=True)) / total
    rest = {}
    for m, w, g in zip(layers, weights, groups, strict=True):
        rest[g] = rest.get(g, 0.0) + w * (m - mean)
    count = len(rest)
    error = math.sqrt(count / (count - 1) * sum(r * r for r in rest.values())) / total
    return depth / (mean + 1.959964 * error), depth / max(mean - 1.959964 * error, 1.0)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_interval_is_that_of_the_definition(grouped):
    rng = np.random.default_rng(5)
    layers = rng.integers(1, 13, 40)
    weights = rng.integers(1, 4, 40) if grouped else np.ones(40, dtype=int)
    groups = np.sort(rng.integers(0, 9, 40)) if grouped else np.arange(40)
    given = {"weights": weights, "group": groups} if grouped else {}
    expected = slow(layers.tolist(), 12, weights.tolist(), groups.tolist())
    assert layer_speedup_interval(layers, 12, **given) == pytest.approx(expected)


def test_of_single_rows_it_is_the_standard_error_of_the_mean():
    layers = np.array([2, 4, 6, 12, 3, 3, 5, 1])
    reach = 1.959964 * layers.std(ddof=1) / math.sqrt(len(layers))
    low, high = layer_speedup_interval(layers, 12)
    assert (low, high) == pytest.approx((12 / (4.5 + reach), 12 / (4.5 - reach)))


def test_other_rows_lie_in_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    kinds, shares = np.arange(1, 13), rng.dirichlet(np.ones(12))
    true = 12 / float(kinds @ shares)
    held = 0
    for _ in range(400):
        low, high = layer_speedup_interval(rng.choice(kinds, 200, p=shares), 12)
        held += low <= true <= high
    assert 0.92 <= held / 400 <= 0.98


def test_words_of_one_sentence_count_together():
    layers = np.repeat([2, 12, 4, 6], 10)
    groups = np.repeat([0, 1, 2, 3], 10)
    narrow = layer_speedup_interval(layers, 12)
    wide = layer_speedup_interval(layers, 12, group=groups)
    assert wide[0] < narrow[0] < layer_speedup(layers, 12) < narrow[1] < wide[1]


def test_edges():
    assert layer_speedup_interval([4], 12) is None
    assert layer_speedup_interval([4, 6], 12, group=[0, 0]) is None
    assert layer_speedup_interval([6, 6, 6], 12) == (2.0, 2.0)
    assert layer_speedup_interval([1, 12], 12)[1] == 12.0  # less than a layer is not possible


def test_beyond():
    assert beyond(2.0, (1.7, 1.9))
    assert beyond(1.5, (1.7, 1.9))
    assert not beyond(1.9, (1.7, 1.9))
    assert not beyond(2.0, None)


def test_a_point_says_its_interval():
    measured = calibrate(random_trace(rows=80), "layers=2.0", name="x").measured
    low, high = measured["layer_speedup_interval"]
    assert low < measured["layer_speedup"] < high
