"""Distances on demand: the same decisions, and not computed where the logits decide alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits import slow
from tests.exits.traces import random_trace, small_traces

from de3bert.errors import De3Error, UsageError
from de3bert.exits import ExitView, Policy, Signal
from de3bert.exits.signals import single_row
from de3bert.exits.signals.parse import SIGNALS, SignalKind

LINES = [
    "edr(lambda={w}) < {t} x {c}",
    "edr(lambda={w}) <= {t} x {c}",
    "distance_ratio < {t} x {c}",
]


class Fetch:
    """Hands over distances and counts how often."""

    def __init__(self, distances):
        self.distances, self.calls = distances, 0

    def __call__(self):
        self.calls += 1
        return self.distances


def lazy(view: ExitView) -> tuple[ExitView, Fetch]:
    fetch = Fetch(view.distances)
    return ExitView(view.layer, view.logits, fetch=fetch), fetch


def both_ways(policy: Policy, trace, rows=slice(None)) -> list[int]:
    """Folds a trace eagerly and lazily side by side; how often each exit fetched."""
    state = policy.start(len(trace.logits[rows]), trace.exit_layers[:-1], trace.depth)
    other, calls = state, []
    for number in range(trace.exits - 1):
        view, fetch = lazy(trace.view(number, rows))
        leave, state = policy.step(state, trace.view(number, rows))
        leave_too, other = policy.step(other, view)
        assert leave.tolist() == leave_too.tolist()
        assert state.run.tolist() == other.run.tolist()
        assert leave.dtype == leave_too.dtype
        assert state.run.dtype == other.run.dtype
        calls.append(fetch.calls)
    assert set(calls) <= {0, 1}
    return calls


@settings(max_examples=150, deadline=None)
@given(
    small_traces(),
    st.sampled_from(LINES),
    st.floats(0, 1.1),
    st.sampled_from([0.0, 0.667, 1.0, 3.0, 1e308]),
    st.integers(1, 3),
)
def test_lazy_and_eager_are_the_same(trace, line, threshold, weight, count):
    policy = Policy.parse(line.format(w=weight, t=threshold, c=count))
    both_ways(policy, trace)
    both_ways(policy, trace, slice(0, 1))


@settings(max_examples=150, deadline=None)
@given(st.floats(0, 40), st.floats(0, 2), st.floats(0, 2), st.floats(0, 10))
def test_the_bound_is_never_passed(gap, near, far, weight):
    logits, params = [gap, 0.0], {"lambda": weight}
    bound = single_row.worst_edr(logits, params)
    local = slow.entropy(logits)
    by_hand = local * (weight + 1) / (weight * local + 1)
    assert bound == pytest.approx(by_hand, rel=1e-9, abs=1e-14)
    assert single_row.edr(logits, [near, far], params) <= bound * (1 + 1e-12)
    assert single_row.distance_ratio(logits, [near, far], {}) <= single_row.worst_distance_ratio(
        logits, {}
    )


def test_the_bound_is_reached():
    logits = [1.3, 0.0]
    worst = single_row.edr(logits, [0.7, 0.0], {"lambda": 2.0})
    assert single_row.worst_edr(logits, {"lambda": 2.0}) == pytest.approx(worst, rel=1e-14)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 30), st.floats(0, 10), st.integers(-2, 2), st.sampled_from([1.0, 1 - 1e-16]))
def test_on_the_edge_of_the_bound_rounding_decides_nothing(gap, weight, steps, far):
    """Thresholds within a few floats of the bound, distances that all but reach it."""
    logits, distances = np.asarray([[gap, 0.0]]), np.asarray([[1.0, 1.0 - far]])
    threshold = single_row.worst_edr([gap, 0.0], {"lambda": weight})
    for _ in range(abs(steps)):
        threshold = math.nextafter(threshold, math.copysign(math.inf, steps))
    policy = Policy.parse(f"edr(lambda={weight!r}) < {threshold!r}")
    view = ExitView(1, logits, distances)
    eager, _ = policy.step(policy.start(1, (1,), 2), view)
    late, _ = policy.step(policy.start(1, (1,), 2), lazy(view)[0])
    assert eager.tolist() == late.tolist()


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    ("line", "calls"),
    [
        ("edr(lambda=1.0) < 0.23", 1),  # the bound of [4, 0] is 2 E / (E + 1) = 0.2302
        ("edr(lambda=1.0) < 0.24", 0),
        ("edr(lambda=1.0) < 0.0", 1),
        ("edr(lambda=0) < 0.5", 0),
        ("distance_ratio < 0.9", 1),
        ("distance_ratio < 1.1", 0),
        ("entropy < 0.5", 0),
        ("patience(1)", 0),
        ("full", 0),
    ],
)
def test_when_distances_are_fetched(line, calls, rows):
    logits, distances = np.asarray([[4.0, 0.0]] * rows), np.asarray([[0.1, 0.9]] * rows)
    view, fetch = lazy(ExitView(1, logits, distances))
    policy = Policy.parse(line)
    policy.step(policy.start(rows, (1,), 2), view)
    assert fetch.calls == calls


def test_one_row_in_doubt_is_enough_to_fetch():
    logits, distances = np.asarray([[9.0, 0.0], [0.1, 0.0]]), np.full((2, 2), 0.5)
    policy = Policy.parse("edr < 0.2")
    view, fetch = lazy(ExitView(1, logits, distances))
    leave, _ = policy.step(policy.start(2, (1,), 2), view)
    assert (leave.tolist(), fetch.calls) == ([True, False], 1)


def test_a_trained_looking_model_fetches_at_some_exits_only():
    trace, policy = random_trace(rows=60, noise=0.3), Policy.parse("edr < 0.5")
    calls = [both_ways(policy, trace, slice(row, row + 1)) for row in range(trace.rows)]
    share = np.mean(calls)
    assert 0.1 < share < 0.9


def test_the_value_on_the_threshold_is_fetched_once():
    view, fetch = lazy(ExitView(1, np.asarray([[1.0, 0.0]]), np.asarray([[0.1, 0.9]])))
    value = float(Signal.parse("edr")(view)[0])
    fetch.calls = 0
    policy = Policy.parse(f"edr < {value!r}")
    assert policy.step(policy.start(1, (1,), 2), view)[0].tolist() == [False]
    assert fetch.calls == 1


def test_a_lazy_view_serves_a_signal():
    trace = random_trace(rows=5)
    view, fetch = lazy(trace.view(0))
    expected = Signal.parse("edr")(trace.view(0))
    assert Signal.parse("edr")(view).tolist() == expected.tolist()
    assert fetch.calls == 1
    assert view.fetched().distances is fetch.distances
    eager = trace.view(0)
    assert eager.fetched() is eager


def test_nan_distances_matter_only_where_they_decide():
    missing = np.full((1, 2), np.nan)
    policy = Policy.parse("edr < 0.4")
    sure, _ = lazy(ExitView(3, np.asarray([[9.0, 0.0]]), missing))
    assert policy.step(policy.start(1, (3,), 4), sure)[0].tolist() == [True]
    unsure, _ = lazy(ExitView(3, np.asarray([[0.3, 0.0]]), missing))
    with pytest.raises(De3Error, match=r"not a number.*layer 3"):
        policy.step(policy.start(1, (3,), 4), unsure)


def test_no_distances_at_all_is_still_an_error():
    policy = Policy.parse("edr < 0.4")
    with pytest.raises(UsageError, match="needs distances"):
        policy.step(policy.start(1, (1,), 2), ExitView(1, np.asarray([[9.0, 0.0]])))


@pytest.mark.parametrize("rising", [False, True])
def test_a_signal_without_a_bound_fetches(monkeypatch, rising):
    monkeypatch.setattr(SIGNALS, "_parts", dict(SIGNALS._parts))
    kind = SignalKind(
        lambda view, params: view.distances.min(-1), needs_distances=True, rising=rising
    )
    SIGNALS.add("closest", kind)
    policy = Policy.parse("closest > -100" if rising else "closest < 100")
    view, fetch = lazy(ExitView(1, np.zeros((1, 2)), np.ones((1, 2))))
    assert policy.step(policy.start(1, (1,), 2), view)[0].tolist() == [True]
    assert fetch.calls == 1
