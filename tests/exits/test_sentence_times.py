"""Predicted times of sentences: by all their tokens, and by the word that leaves last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.costs import COST, slow_text
from tests.exits.word_traces import word_trace

from de3bert.exits import calibrate, curve, place_exits, replay
from de3bert.exits.calibrate import measure
from de3bert.exits.policy import Policy

TRACE = replace(word_trace(seed=3, sentences=40), info={"special_tokens": 2})


def slow_mean(trace, policy: Policy, tested: bool = True) -> float:
    """Sentence by sentence: its words leave at `exit_layers`, the last of them ends the run."""
    answer = replay(trace, policy)
    spent = []
    for number in range(trace.sentences):
        own = trace.sentence == number
        layers = int(answer.exit_layers[own].max())
        tests = min(trace.exit_layers.index(layers) + 1, trace.exits - 1) if tested else 0
        spent.append(slow_text(COST, int(trace.tokens[own].sum()) + 2, layers, tests))
    return float(np.mean(spent))


@pytest.mark.parametrize("line", ["entropy < 0.6", "entropy < 0.6 mean", "entropy < 0.6 window 3"])
def test_a_sentence_takes_what_its_last_word_takes(line):
    policy = Policy.parse(line)
    assert len(set(replay(TRACE, policy).exit_layers)) > 1
    found = measure(TRACE, policy, "accuracy", COST)
    assert found["predicted_ms"] == pytest.approx(slow_mean(TRACE, policy))
    full = slow_mean(TRACE, Policy.parse("full"), tested=False)
    assert found["predicted_time_speedup"] == pytest.approx(full / found["predicted_ms"])


@pytest.mark.parametrize("family", ["entropy", "entropy mean", "entropy x 2"])
def test_the_times_of_a_curve_are_those_of_its_points(family):
    points = curve(TRACE, family, costs=COST.row_costs(TRACE))
    for index in range(0, len(points), 7):
        expected = slow_mean(TRACE, points.policy(index))
        assert points.milliseconds[index] == pytest.approx(expected)


def test_targets_of_time_and_the_exits_that_pay():
    full = slow_mean(TRACE, Policy.parse("full"), tested=False)
    point = calibrate(TRACE, f"latency={0.8 * full}ms", name="x", family="entropy", cost=COST)
    assert point.measured["predicted_ms"] == pytest.approx(slow_mean(TRACE, point.policy))
    assert point.measured["predicted_ms"] <= 0.8 * full + 1e-9
    placed = place_exits(TRACE, COST, "drop=0.5", family="entropy")
    assert placed.predicted_ms < placed.full_ms == pytest.approx(full)


def test_a_trace_that_does_not_tell_its_special_tokens():
    for info in ({}, {"special_tokens": "two"}, {"special_tokens": -3}):
        lengths = replace(TRACE, info=info).lengths
        np.testing.assert_array_equal(lengths, TRACE.lengths - 2)
