"""Calibration by predicted time, against a search over all points with plain sums."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.exits.costs import COST, slow_text, with_test_cost
from tests.exits.costs import timed_trace as make_timed_trace
from tests.exits.traces import make_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Curve, OperatingPoint, Policy, Signal, Target, calibrate, curve, replay
from de3bert.exits.calibrate import LAMBDA_GRID, measure
from de3bert.exits.choose import choose, fastest

TRACE = make_timed_trace(rows=120, exits=8, noise=1.0)
FULL = float(TRACE.correct[:, -1].mean())
FULL_MS = float(np.mean([slow_text(COST, tokens, 8, 0) for tokens in TRACE.tokens]))


def spent(policy, trace=TRACE, cost=COST):
    """Mean milliseconds: every row on its own, every internal exit up to its own tested."""
    total = 0.0
    for tokens, layer in zip(trace.tokens, replay(trace, policy).exit_layers, strict=True):
        exits_tested = sum(each <= layer for each in trace.exit_layers[:-1])
        total += slow_text(cost, tokens, layer, exits_tested)
    return total / trace.rows


def all_points(trace=TRACE, lambdas=LAMBDA_GRID):
    """(lambda, milliseconds, score) of every point of every curve, slowest first."""
    found = []
    for weight in lambdas:
        each = curve(trace, Signal("edr", (("lambda", weight),)))
        costs = [spent(each.policy(index), trace) for index in range(len(each))]
        found += zip([weight] * len(each), costs, each.score, strict=True)
    return found


@pytest.fixture(scope="module")
def points():
    return all_points()


@pytest.mark.parametrize("target", ["latency=4ms", "latency=5", "speedup=1.75", "speedup=2.0"])
def test_a_time_target_is_met_with_the_best_lambda(target, points):
    point = calibrate(TRACE, target, name="x", cost=COST)
    asked = Target.parse(target)
    limit = asked.value if asked.kind == "latency" else FULL_MS / asked.value
    firsts = {}
    for weight, milliseconds, share in points:
        if milliseconds <= limit * (1 + 1e-9):
            firsts.setdefault(weight, (share, milliseconds))
    weight = dict(point.policy.signal.params)["lambda"]
    assert len(set(firsts.values())) > 1
    assert point.measured["score"] == pytest.approx(max(firsts.values())[0])
    assert point.measured["predicted_ms"] == pytest.approx(firsts[weight][1])
    assert 0.95 * limit < point.measured["predicted_ms"] <= limit * (1 + 1e-9)
    assert point.target == str(asked)


@pytest.mark.parametrize("target", ["drop=0.02", "accuracy=0.7"])
def test_with_a_cost_model_fastest_means_time(target, points):
    point = calibrate(TRACE, target, name="x", cost=COST)
    goal = 0.7 if target.startswith("accuracy") else FULL - 0.02
    expected = min(ms for _, ms, share in points if share >= goal - 1e-9)
    assert point.measured["predicted_ms"] == pytest.approx(expected)
    assert point.measured["score"] >= goal - 1e-9


@pytest.mark.parametrize(("lengths", "weight"), [((100, 10), 0.0), ((10, 100), 3.0)])
def test_one_long_text_is_worth_more_than_one_short_text(lengths, weight):
    """By entropy row 0 may leave before the wrong row 1, by distance row 2 may."""
    logits = [[[2.0, 0], [9.0, 0]], [[1.5, 0], [0, 9.0]], [[1.0, 0], [9.0, 0]]]
    distances = [[[0.9, 0.5]], [[0.7, 0.7]], [[0.1, 0.9]]]
    tokens = np.asarray([lengths[0], 30, lengths[1]])
    trace = make_trace(logits, [0, 1, 0], distances, tokens=tokens)
    point = calibrate(trace, "accuracy=1", name="x", lambdas=(0.0, 3.0), cost=COST)
    assert str(point.policy.signal) == ("edr(lambda=3.0)" if weight else "entropy")
    assert replay(trace, point.policy).exit_layers.tolist() == [1 + weight / 3, 2, 2 - weight / 3]
    in_layers = calibrate(trace, "accuracy=1", name="x", lambdas=(0.0, 3.0))
    assert in_layers.measured["layer_speedup"] == point.measured["layer_speedup"]
    assert str(in_layers.policy.signal) == "entropy"


@pytest.mark.parametrize("target", ["latency=4ms", "speedup=2.0"])
def test_a_time_target_needs_a_cost_model(target):
    with pytest.raises(UsageError, match=r"about time.*Run `de3 profile BUNDLE`.*first"):
        calibrate(TRACE, target, name="x")


def test_out_of_reach_names_the_nearest(points):
    least = min(milliseconds for _, milliseconds, _ in points)
    with pytest.raises(
        De3Error, match=rf"latency=0\.1ms.*fastest is `edr\(.*take {least:.4g} ms"
    ) as caught:
        calibrate(TRACE, "latency=0.1ms", name="x", cost=COST)
    assert not isinstance(caught.value, UsageError)
    with pytest.raises(De3Error, match=rf"time speed-up of {FULL_MS / least:.4g}\."):
        calibrate(TRACE, "speedup=50", name="x", cost=COST)


@pytest.mark.parametrize("target", ["layers=2", "drop=0.05", "latency=5ms", "full"])
def test_every_target_gets_predicted_times(target):
    measured = calibrate(TRACE, target, name="x", cost=COST).measured
    ratio = FULL_MS / measured["predicted_ms"]
    assert measured["predicted_time_speedup"] == pytest.approx(ratio)
    without = calibrate(TRACE, "layers=2", name="x").measured
    assert set(measured) - set(without) == {"predicted_ms", "predicted_time_speedup"}
    point = calibrate(TRACE, target, name="x", cost=COST)
    assert OperatingPoint.from_json(json.loads(json.dumps(point.to_json()))) == point


@pytest.mark.parametrize(
    ("line", "layers", "tests"), [("full", 8, 0), ("layer(3)", 3, 1), ("layer(8)", 8, 0)]
)
def test_exits_that_nobody_reads_are_not_charged(line, layers, tests):
    expected = np.mean([slow_text(COST, tokens, layers, tests) for tokens in TRACE.tokens])
    measured = measure(TRACE, Policy.parse(line), cost=COST)
    assert measured["predicted_ms"] == pytest.approx(expected)


def test_a_policy_that_never_leaves_is_slower_than_the_full_model():
    measured = measure(TRACE, Policy.parse("edr < 0.0"), cost=COST)
    assert measured["predicted_ms"] == pytest.approx(spent(Policy.parse("edr < 0.0")))
    assert measured["layer_speedup"] == 1
    assert measured["predicted_time_speedup"] < 1


def test_fixed_depth_is_charged_for_one_exit():
    point = calibrate(TRACE, "latency=4ms", name="x", family="layers", cost=COST)
    layer = point.policy.rule.layer
    one, next_one = (
        np.mean([slow_text(COST, tokens, each, 1) for tokens in TRACE.tokens])
        for each in (layer, layer + 1)
    )
    assert point.measured["predicted_ms"] == pytest.approx(one)
    assert one <= 4.0 < next_one


def test_dear_tests_make_the_deepest_fixed_exits_useless():
    """Layer 7 and a test take longer than all 8 layers: the time rises before it falls."""
    dear = with_test_cost(1.2)
    point = calibrate(TRACE, "speedup=1.0", name="x", family="layers", cost=dear)
    assert str(point.policy) == "layer(8)"
    slower = measure(TRACE, Policy.parse("layer(7)"), cost=dear)
    assert slower["predicted_time_speedup"] < 1


def hand_made(milliseconds, score, family="layers"):
    points = len(score)
    return Curve(
        family,
        "accuracy",
        rows=10,
        depth=points,
        thresholds=np.arange(points, 0.0, -1.0),
        layers_mean=np.arange(points, 0.0, -1.0),
        score=np.asarray(score),
        milliseconds=np.asarray(milliseconds),
    )


WAVE = hand_made([10.0, 12.0, 8.0, 9.0, 9.5, 5.0, 6.0], [0.9, 0.89, 0.88, 0.87, 0.8, 0.5, 0.6])


@pytest.mark.parametrize(
    ("target", "index"),
    [
        ("latency=10", 0),
        ("latency=9.7", 2),  # the first that is fast enough, though slower ones follow it
        ("latency=5.5", 5),  # not the last point, which is too slow
        ("speedup=2", 5),
        ("accuracy=0.89", 0),  # point 1 runs fewer layers in more time
        ("accuracy=0.87", 2),
        ("drop=0.3", 6),
        ("drop=0.4", 5),
    ],
)
def test_time_that_does_not_fall_along_the_curve(target, index):
    assert choose([WAVE], Target.parse(target), full_score=0.9, full_ms=10.0).index == index


def test_the_nearest_of_a_wave_is_its_lowest_point():
    with pytest.raises(De3Error, match=r"fastest is `layer\(2\)`, predicted to take 5 ms"):
        choose([WAVE], Target.parse("latency=1"), full_score=0.9, full_ms=10.0)


def test_equal_times_go_to_the_better_score_and_then_to_fewer_layers():
    first, second = hand_made([3, 2, 2], [0.9, 0.8, 0.8]), hand_made([3, 2, 4], [0.9, 0.85, 0.7])
    assert fastest([first, second], 0.8).curve is second
    assert fastest([first], 0.8).index == 2
    assert fastest([first, second], 0.95) is None


def test_rounding_does_not_break_ties():
    plain = hand_made([3.0, 2.0 + 1e-13], [0.9, 0.8], "edr(lambda=1.0)")
    other = hand_made([3.0, 2.0], [0.9, 0.8], "edr(lambda=3.0)")
    assert fastest([other, plain], 0.8).curve is plain
    assert choose([other, plain], Target.parse("latency=2"), 0.9, 3.0).curve is plain
