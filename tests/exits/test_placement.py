"""Placing exits against brute force: every subset, every policy replayed, every row charged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits.costs import COST, slow_text, timed_trace, with_test_cost
from tests.exits.traces import make_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Signal, curve, place_exits, replay
from de3bert.exits import subsets as subsets_module

LAMBDAS = (0.667, 1.0, 3.0)


def subsets_of(layers):
    return [kept for size in range(len(layers) + 1) for kept in combinations(layers, size)]


def slow_best(trace, cost, goal, lambdas=LAMBDAS):
    """The least mean time with just the exits of this trace; infinite if no policy will do."""
    least = float("inf")
    for weight in lambdas:
        signal = Signal("edr", (("lambda", weight),))
        each = curve(trace, signal)
        for index in range(len(each)):
            answer = replay(trace, each.policy(index))
            if (answer.labels == trace.labels).mean() < goal - 1e-9:
                continue
            spent = 0.0
            for tokens, layer in zip(trace.tokens, answer.exit_layers, strict=True):
                tested = sum(inner <= layer for inner in trace.exit_layers[:-1])
                spent += slow_text(cost, tokens, layer, tested)
            least = min(least, spent / trace.rows)
    return least


def slow_only(trace, kept):
    numbers = [trace.exit_layers.index(layer) for layer in sorted({*kept, trace.depth})]
    return make_trace(
        trace.logits[:, numbers],
        trace.labels,
        trace.distances[:, numbers[:-1]],
        tokens=trace.tokens,
        exit_layers=tuple(trace.exit_layers[number] for number in numbers),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", ["drop", "accuracy"])
def test_no_subset_is_faster(seed, kind):
    trace = replace(
        timed_trace(rows=25, exits=5, seed=seed, noise=1.0), exit_layers=(1, 2, 4, 5, 8)
    )
    cost, full = with_test_cost(0.8), float(trace.correct[:, -1].mean())
    goal = full - 0.02 if kind == "drop" else full - 0.05
    target = "drop=2%" if kind == "drop" else f"accuracy={goal!r}"
    found = place_exits(trace, cost, target, lambdas=LAMBDAS)
    times = {
        kept: slow_best(slow_only(trace, kept), cost, goal)
        for kept in subsets_of(trace.exit_layers[:-1])
    }
    assert found.predicted_ms == pytest.approx(min(times.values()))
    assert times[found.exit_layers[:-1]] == pytest.approx(found.predicted_ms)
    assert found.all_exits_ms == pytest.approx(times[1, 2, 4, 5])
    assert found.full_ms == pytest.approx(times[()])
    if seed == 1:  # where there is something to find, so that "all exits" would not do
        assert found.predicted_ms < found.all_exits_ms
    check_trail(found, times)


def check_trail(found, times):
    """The gains lead from all exits to the chosen ones."""
    now, time = set(max(times, key=len)), found.all_exits_ms
    for step in found.trail:
        now = now - {step.layer} if step.action == "drop" else now | {step.layer}
        assert step.predicted_ms == pytest.approx(times[tuple(sorted(now))])
        assert step.gain_ms == pytest.approx(time - step.predicted_ms)
        time = step.predicted_ms
    assert tuple(sorted(now)) == found.exit_layers[:-1]
    assert time == pytest.approx(found.predicted_ms)


def test_the_point_is_for_the_model_with_these_exits():
    trace = timed_trace(rows=60, exits=5, noise=1.0)
    found = place_exits(trace, COST, "drop=0.02", lambdas=LAMBDAS)
    part = slow_only(trace, found.exit_layers)
    answer = replay(part, found.point.policy)
    measured = found.point.measured
    assert measured["score"] == pytest.approx((answer.labels == trace.labels).mean())
    assert measured["score"] >= measured["full_score"] - 0.02 - 1e-9
    assert measured["predicted_ms"] == pytest.approx(found.predicted_ms)
    assert list(measured["exit_histogram"]) == [str(layer) for layer in found.exit_layers]
    assert found.point.target == "drop=0.02"


def test_dear_tests_leave_no_exit():
    trace = timed_trace(rows=80, exits=6)
    found = place_exits(trace, with_test_cost(50.0), "drop=0.0")
    assert found.exit_layers == (6,)
    assert str(found.point.policy) == "full"
    assert found.predicted_ms == pytest.approx(found.full_ms)
    assert found.all_exits_ms > found.full_ms
    assert sorted(step.layer for step in found.trail) == [1, 2, 3, 4, 5]


def test_free_tests_keep_useful_exits():
    found = place_exits(timed_trace(rows=80, exits=6), with_test_cost(0.0), "drop=0.05")
    assert len(found.exit_layers) > 1
    assert found.predicted_ms < found.full_ms


def with_useless_exit(trace, number, seed=9):
    """The exit answers at random, and is not sure of it either."""
    rng = np.random.default_rng(seed)
    logits, distances = trace.logits.copy(), trace.distances.copy()
    logits[:, number] = rng.normal(0, 0.1, logits[:, number].shape)
    distances[:, number] = rng.uniform(0.9, 1.1, distances[:, number].shape)
    return replace(trace, logits=logits, distances=distances)


@pytest.mark.parametrize("exits", [6, 10])  # all subsets, and the greedy search
def test_a_useless_exit_is_dropped(exits):
    trace = with_useless_exit(timed_trace(rows=150, exits=exits, noise=0.5), number=2)
    found = place_exits(trace, with_test_cost(0.05), "drop=0.01")
    assert 3 not in found.exit_layers
    assert len(found.exit_layers) > 1
    gain = next(step.gain_ms for step in found.trail if step.layer == 3)
    assert gain > 0


def test_kept_exits_stay():
    trace = timed_trace(rows=60, exits=6)
    found = place_exits(trace, with_test_cost(50.0), "drop=0.0", keep=(2, 5))
    assert found.exit_layers == (2, 5, 6)
    assert [step.layer for step in found.trail] != []
    with pytest.raises(UsageError, match="no exit at layer 9"):
        place_exits(trace, COST, "drop=0.0", keep=(9,))


def test_an_exit_that_no_row_reaches_stays():
    """All leave at exit 1, so exit 2 costs nothing here; harder rows may come to need it."""
    trace = make_trace([[[9.0, 0.0], [9.0, 0.0], [9.0, 0.0]]] * 4, [0] * 4)
    found = place_exits(trace, with_test_cost(0.2), "drop=0")
    assert (found.exit_layers, found.trail) == ((1, 2, 3), ())
    assert found.predicted_ms == found.all_exits_ms < found.full_ms


def test_other_families_and_metrics():
    trace = replace(timed_trace(rows=80, exits=5), distances=None)
    found = place_exits(trace, COST, "drop=0.02", metric="macro_f1")
    assert str(found.point.policy).startswith("entropy < ")
    assert found.point.measured["metric"] == "macro_f1"
    patient = place_exits(trace, COST, "drop=0.1", family="patience")
    assert str(patient.point.policy).startswith("patience(")


def test_json():
    found = place_exits(timed_trace(rows=40, exits=4), with_test_cost(0.3), "drop=0.05")
    document = json.loads(json.dumps(found.to_json()))
    assert document["exit_layers"] == list(found.exit_layers)
    assert document["point"] == json.loads(json.dumps(found.point.to_json()))
    assert [step["layer"] for step in document["trail"]] == [step.layer for step in found.trail]
    assert set(document) == {
        *("exit_layers", "point", "predicted_ms", "all_exits_ms", "full_ms", "trail")
    }


@pytest.mark.parametrize("target", ["layers=2", "latency=5ms", "speedup=2", "full"])
def test_only_scores_are_targets(target):
    with pytest.raises(UsageError, match="`accuracy=` or `drop=`"):
        place_exits(timed_trace(rows=10), COST, target)


def test_out_of_reach_names_the_nearest():
    trace = timed_trace(rows=50, exits=4, noise=2.0)
    with pytest.raises(De3Error, match=r"accuracy=1\.0.*The best is 0\.\d+, by `edr"):
        place_exits(trace, COST, "accuracy=1")


def test_a_goal_that_all_exits_miss_but_fewer_meet():
    """Exit 1 is surely wrong on the rows that exit 2 gets right, and the final head is wrong."""
    sure, right, final = [0.0, 9.0], [5.0, 0.0], [0.0, 3.0]
    trace = make_trace([[sure, right, final]] * 3, [0, 0, 0])
    found = place_exits(trace, with_test_cost(0.1), "accuracy=1")
    assert found.exit_layers == (2, 3)
    assert found.all_exits_ms is None
    assert [(step.layer, step.gain_ms) for step in found.trail] == [(1, None)]
    json.dumps(found.to_json(), allow_nan=False)


def made_up(values):
    """A price for every subset of some layers, by its position in the list of subsets."""
    return lambda kept: values[kept]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10_000))
def test_the_search_over_all_subsets_is_exact(count, seed):
    every = tuple(range(1, count + 1))
    rng = np.random.default_rng(seed)
    values = {kept: float(rng.integers(1, 9)) for kept in subsets_of(every)}
    best, trail = subsets_module.cheapest(every, every, made_up(values))
    least = min(values.values())
    assert values[best] == least
    assert len(best) == max(len(kept) for kept, value in values.items() if value == least)
    assert sum(step.gain_ms for step in trail) == pytest.approx(values[every] - least)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_greedy_search_ends_where_no_single_change_helps(seed):
    every = tuple(range(1, 6))
    rng = np.random.default_rng(seed)
    values = {kept: float(rng.uniform(1, 9)) for kept in subsets_of(every)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsets_module, "EXHAUSTIVE", 0)
        best, trail = subsets_module.cheapest(every, every, made_up(values))
    now, price = set(every), values[every]
    for step in trail:
        now = now - {step.layer} if step.action == "drop" else now | {step.layer}
        assert values[tuple(sorted(now))] == step.predicted_ms <= price
        price = step.predicted_ms
    assert tuple(sorted(now)) == best
    larger = [tuple(sorted({*best, layer})) for layer in every if layer not in best]
    assert all(values[each] >= values[best] for each in larger)


def test_the_greedy_search_adds_back():
    """Dropping 1, then 2, then 3 helps each time; then 1 alone is better than nothing."""
    values = dict.fromkeys(subsets_of((1, 2, 3)), 99.0)
    values.update({(1, 2, 3): 9.0, (2, 3): 8.0, (3,): 7.0, (): 6.0, (1,): 5.0})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsets_module, "EXHAUSTIVE", 0)
        best, trail = subsets_module.cheapest((1, 2, 3), (1, 2, 3), made_up(values))
        held, _ = subsets_module.cheapest((1, 2, 3), (1,), made_up(values))
    assert (best, held) == ((1,), (2, 3))
    assert [(step.action, step.layer) for step in trail] == [
        *(("drop", 1), ("drop", 2), ("drop", 3), ("add", 1))
    ]


def test_the_greedy_search_goes_on_while_the_target_is_not_met(monkeypatch):
    monkeypatch.setattr(subsets_module, "EXHAUSTIVE", 0)
    values = dict.fromkeys(subsets_of((1, 2, 3)), float("inf")) | {(3,): 7.0}
    best, trail = subsets_module.cheapest((1, 2, 3), (1, 2, 3), made_up(values))
    assert best == (3,)
    assert [(step.layer, step.predicted_ms, step.gain_ms) for step in trail] == [
        *((1, None, None), (2, 7.0, None))
    ]


def test_greedy_and_exhaustive_agree_on_an_easy_trace(monkeypatch):
    trace = with_useless_exit(timed_trace(rows=100, exits=6, noise=0.5), number=2)
    whole = place_exits(trace, with_test_cost(0.1), "drop=0.01")
    monkeypatch.setattr(subsets_module, "EXHAUSTIVE", 0)
    greedy = place_exits(trace, with_test_cost(0.1), "drop=0.01")
    assert greedy.predicted_ms == pytest.approx(whole.predicted_ms, rel=0.02)
    assert greedy.predicted_ms < greedy.all_exits_ms
