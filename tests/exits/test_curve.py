"""Curves against brute force: every threshold tried, every row replayed in plain Python."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits import slow
from tests.exits.traces import make_trace, random_trace, small_traces

from de3bert.errors import UsageError
from de3bert.exits import Policy, Signal, curve, replay
from de3bert.exits import scoring as scoring_module
from de3bert.exits.metrics import METRICS, score

SIGNALS = [
    "entropy",
    "edr(lambda=1.5)",
    "distance_ratio",
    "raw_energy",
    "max_probability",
    "certainty",
]
WINDOWS = ["entropy x 2", "max_probability x 3", "certainty x 2"]
FAMILIES = [*SIGNALS, *WINDOWS, "patience", "layers", "oracle", "bandit", "bandit(mu=0.3)"]


@settings(max_examples=120, deadline=None)
@given(small_traces(), st.sampled_from(SIGNALS), st.integers(1, 3))
def test_a_curve_has_exactly_the_outcomes_of_all_thresholds(trace, text, count):
    signal = Signal.parse(text)
    found = curve(trace, text, count=count)
    points = [
        (round(layers * trace.rows), round(share * trace.rows))
        for layers, share in zip(found.layers_mean, found.score, strict=True)
    ]
    assert points == slow.threshold_outcomes(trace, signal, count)


@settings(max_examples=120, deadline=None)
@given(small_traces(), st.sampled_from(FAMILIES))
def test_replaying_a_point_gives_the_point(trace, family):
    found = curve(trace, family, metric="macro_f1")
    for index in range(len(found)):
        policy = Policy.parse(str(found.policy(index)))  # also through its printed line
        answer = replay(trace, policy)
        assert answer.exit_layers.mean() == pytest.approx(found.layers_mean[index], abs=1e-12)
        expected = score("macro_f1", trace.labels, answer.labels, trace.classes)
        assert found.score[index] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=120, deadline=None)
@given(small_traces(), st.sampled_from(FAMILIES), st.integers(0, 1000))
def test_milliseconds_are_those_of_the_replay(trace, family, seed):
    """Any matrix will do, also one in which leaving earlier costs more."""
    costs = np.random.default_rng(seed).uniform(0.1, 9, (trace.rows, trace.exits))
    found, plain = curve(trace, family, costs=costs), curve(trace, family)
    assert plain.milliseconds is None
    assert found.score.tolist() == plain.score.tolist()
    assert found.thresholds.tolist() == plain.thresholds.tolist()
    for index in range(len(found)):
        exits = replay(trace, found.policy(index)).exit_index.tolist()
        expected = sum(costs[row, number] for row, number in enumerate(exits)) / trace.rows
        assert found.milliseconds[index] == pytest.approx(expected, rel=1e-12)


def test_costs_must_fit_the_trace():
    trace = random_trace(rows=10)
    with pytest.raises(UsageError, match=r"costs must be \(10, 6\), got \(10, 5\)"):
        curve(trace, "entropy", costs=np.ones((10, 5)))


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize("chunk", [1 << 20, 14])
def test_every_metric_is_exact_in_any_chunk_size(metric, chunk, monkeypatch):
    monkeypatch.setattr(scoring_module, "CHUNK", chunk)
    trace = random_trace(rows=60, classes=2)
    found = curve(trace, "edr", metric)
    assert len(found) > 60
    for index in range(0, len(found), 7):
        labels = replay(trace, found.policy(index)).labels
        assert found.score[index] == pytest.approx(score(metric, trace.labels, labels, 2))


def test_the_threshold_lies_between_neighbouring_floats():
    low = np.float32(1.0)
    logits = [[[low, 0], [0, 3]], [[np.nextafter(low, np.float32(2)), 0], [0, 3]]]
    found = curve(make_trace(logits, [0, 1]), "entropy")
    assert found.layers_mean.tolist() == [2.0, 1.5, 1.0]
    middle = replay(make_trace(logits, [0, 1]), found.policy(1))
    assert middle.exit_layers.tolist() == [2, 1]


def test_ties_move_together():
    found = curve(make_trace(np.tile([[1.0, 0.0], [2.0, 0.0]], (5, 1, 1)), [0] * 5), "entropy")
    assert found.layers_mean.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_curve_runs_from_slow_to_fast(family):
    trace = random_trace(rows=100)
    found = curve(trace, family)
    assert (np.diff(found.layer_speedup) >= 0).all()
    np.testing.assert_allclose(found.layer_speedup, trace.depth / found.layers_mean)
    if family in (*SIGNALS, *WINDOWS, "patience", "layers"):  # the others need not go full depth
        assert found.layer_speedup[0] == 1
        full = score("accuracy", trace.labels, trace.predictions[:, -1], 3)
        assert found.score[0] == pytest.approx(full)


def test_both_ends_of_a_threshold_curve():
    trace = random_trace(rows=100)
    found = curve(trace, "entropy")
    assert str(found.policy(0)) == "entropy < 0.0"
    assert found.layers_mean[-1] == 1
    rising = curve(trace, "max_probability")
    assert str(rising.policy(0)) == "max_probability > 1.0"
    assert (np.diff(rising.thresholds) < 0).all()


def test_patience_and_layers_have_one_point_each():
    trace = random_trace(rows=50, exits=5)
    assert curve(trace, "patience").thresholds.tolist() == [4, 3, 2, 1]
    layers = curve(trace, "layers")
    assert layers.thresholds.tolist() == [5, 4, 3, 2, 1]
    assert layers.score.tolist() == pytest.approx(trace.correct.mean(axis=0)[::-1].tolist())


def test_one_exit_is_one_point():
    trace = make_trace(np.zeros((3, 1, 2)), [0, 1, 1], exit_layers=(12,))
    for family in ("entropy", "raw_energy", "max_probability", "patience", "layers"):
        found = curve(trace, family)
        assert (found.layers_mean.tolist(), len(found)) == ([12.0], 1)
    assert str(curve(trace, "max_probability").policy(0)) == "max_probability > 1.0"


def test_a_curve_needs_labels_and_distances():
    trace = make_trace(np.zeros((3, 2, 2)))
    with pytest.raises(UsageError, match="no labels"):
        curve(trace, "entropy")
    with pytest.raises(UsageError, match="needs distances"):
        curve(make_trace(np.zeros((3, 2, 2)), [0, 0, 1]), "edr")


def test_at_interpolates_in_mean_layers():
    trace = make_trace([[[1, 0], [0, 1], [1, 0]], [[0, 1], [1, 0], [1, 0]]], [0, 0])
    found = curve(trace, "layers")
    assert found.score.tolist() == [1.0, 0.5, 0.5]
    assert found.at(layer_speedup=1.0) == 1.0
    assert found.at(layer_speedup=1.5) == 0.5
    assert found.at(layer_speedup=3 / 2.5) == pytest.approx(0.75)
    assert found.at(layer_speedup=3.0) == 0.5


def test_at_is_what_a_random_mixture_of_neighbours_gives():
    trace = random_trace(rows=400)
    found = curve(trace, "patience")
    slow_one, fast_one = (replay(trace, found.policy(index)) for index in (-2, -1))
    layers = 0.3 * slow_one.exit_layers.mean() + 0.7 * fast_one.exit_layers.mean()
    right = [(each.labels == trace.labels).mean() for each in (slow_one, fast_one)]
    expected = 0.3 * right[0] + 0.7 * right[1]
    assert found.at(layer_speedup=trace.depth / layers) == pytest.approx(expected)


@pytest.mark.parametrize("ratio", [0.9, 6.5, float("nan")])
def test_at_outside_the_curve(ratio):
    with pytest.raises(UsageError, match="layer speed-up of 1 to 6 here"):
        curve(random_trace(rows=50), "entropy").at(layer_speedup=ratio)


def test_index_at_is_the_first_that_is_fast_enough():
    found = curve(random_trace(rows=100), "edr")
    index = found.index_at(layer_speedup=2.0)
    assert found.layer_speedup[index - 1] < 2.0 <= found.layer_speedup[index]
    assert found.index_at(layer_speedup=1.0) == 0
    assert found.index_at(layer_speedup=0.5) == 0
    with pytest.raises(UsageError, match="not 7"):
        found.index_at(layer_speedup=7.0)


def test_area_is_the_mean_of_at():
    found = curve(random_trace(rows=100), "edr")
    grid = np.linspace(1.3, 4.1, 20_001)
    values = np.asarray([found.at(ratio) for ratio in grid])
    mean = sum((a + b) / 2 for a, b in pairwise(values)) / 20_000
    assert found.area(1.3, 4.1) == pytest.approx(mean, abs=1e-6)
    with pytest.raises(UsageError, match="must be increasing"):
        found.area(2.0, 2.0)
    with pytest.raises(UsageError, match="not 9"):
        found.area(2.0, 9.0)


def test_json_and_thinning():
    found = curve(random_trace(rows=200), "entropy x 2")
    whole = json.loads(json.dumps(found.to_json()))
    assert whole["family"] == "entropy x 2"
    assert whole["thresholds"] == found.thresholds.tolist()
    thin = found.to_json(max_points=20)
    assert 15 <= len(thin["score"]) <= 20
    for key in ("thresholds", "layers_mean", "layer_speedup", "score"):
        assert (thin[key][0], thin[key][-1]) == (whole[key][0], whole[key][-1])
        assert set(thin[key]) <= set(whole[key])
    with pytest.raises(UsageError, match="at least 2"):
        found.to_json(max_points=1)


def test_json_has_milliseconds_where_the_curve_has():
    trace = random_trace(rows=200)
    costs = np.arange(1.0, 1201.0).reshape(200, 6)
    found = curve(trace, "entropy", costs=costs)
    assert "milliseconds" not in curve(trace, "entropy").to_json()
    assert json.loads(json.dumps(found.to_json()))["milliseconds"] == found.milliseconds.tolist()
    thin = found.to_json(max_points=20)
    assert len(thin["milliseconds"]) == len(thin["score"])
    assert thin["milliseconds"][-1] == found.milliseconds[-1]
