"""The cost model against plain Python, its fit against trying every set of costs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits.costs import COST, slow_milliseconds, slow_text, timed_trace
from tests.exits.traces import make_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import CostModel, TimeSample
from de3bert.exits.cost_model import BatchCost

CASES = [(layers, tests) for layers in (1, 2, 6, 12) for tests in (0, 1, 5, 11)]


@given(st.integers(0, 400), st.integers(1, 24), st.integers(0, 23), st.sampled_from([1, 8]))
def test_milliseconds_are_straight_lines(tokens, layers, tests, batch):
    found = COST.milliseconds(tokens, layers, tests, batch)
    assert found == pytest.approx(slow_milliseconds(COST, tokens, layers, tests, batch), rel=1e-12)


def test_many_cases_at_once():
    tokens = np.asarray([5, 30, 65, 200])
    layers, tests = np.asarray([1, 2, 3, 4]), np.asarray([0, 1, 1, 3])
    found = COST.milliseconds(tokens, layers, tests)
    expected = [slow_milliseconds(COST, *case) for case in zip(tokens, layers, tests, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert COST.milliseconds(tokens, 2, 0).shape == (4,)


def test_golden_numbers():
    # Half way from 30 to 100 tokens: fixed 1.3, layer 0.9, test 0.065.
    assert COST.milliseconds(65, 4, 3) == pytest.approx(1.3 + 4 * 0.9 + 3 * 0.065)
    assert COST.milliseconds(1, 4, 3) == COST.milliseconds(10, 4, 3)
    # 70 tokens beyond the last point is one more step of the last slope: 1.9, 2.1, 0.05.
    assert COST.milliseconds(170, 4, 3) == pytest.approx(1.9 + 4 * 2.1 + 3 * 0.05)
    assert COST.tokenising([10, 30, 90]).tolist() == pytest.approx([0.02, 0.06, 0.18])


def test_a_falling_line_stops_at_zero():
    falling = CostModel({1: BatchCost((10, 20), (2.0, 1.0), (1.0, 1.0), (0.0, 0.0))})
    assert falling.milliseconds([20, 25, 30, 90], 0, 0).tolist() == pytest.approx([1, 0.5, 0, 0])


def test_one_length_serves_all():
    flat = CostModel({1: BatchCost((50,), (2.0,), (1.0,), (0.5,))})
    assert flat.milliseconds([1, 50, 900], 3, 2).tolist() == [6.0, 6.0, 6.0]
    assert flat.tokenising(30) == 0


def test_a_batch_size_that_was_not_measured():
    with pytest.raises(UsageError, match=r"Batch size 4 was not measured\. Measured: 1, 8"):
        COST.milliseconds(10, 1, 0, batch=4)


def test_row_costs_charge_every_exit_on_the_way():
    trace = replace(timed_trace(rows=20, exits=4), exit_layers=(2, 3, 6, 12))
    found = COST.row_costs(trace)
    for row, tokens in enumerate(trace.tokens.tolist()):
        expected = [slow_text(COST, tokens, *case) for case in ((2, 1), (3, 2), (6, 3), (12, 3))]
        np.testing.assert_allclose(found[row], expected, rtol=1e-12)
        assert COST.full(trace)[row] == pytest.approx(slow_text(COST, tokens, 12, 0))


def test_row_costs_of_fewer_exits_are_those_of_the_smaller_trace():
    trace = replace(timed_trace(rows=20, exits=4), exit_layers=(2, 3, 6, 12))
    np.testing.assert_array_equal(COST.row_costs(trace, (3,)), COST.row_costs(trace.only([3])))
    assert COST.row_costs(trace, (6, 3, 12)).shape == (20, 3)
    np.testing.assert_array_equal(COST.row_costs(trace, ())[:, 0], COST.full(trace))
    with pytest.raises(UsageError, match=r"no exit at layer 5\. Exits are at: 2, 3, 6, 12"):
        COST.row_costs(trace, (5,))


def test_row_costs_with_other_tests():
    trace = timed_trace(rows=5, exits=3)
    found = COST.row_costs(trace, tests=(1, 1, 0))
    expected = [slow_text(COST, trace.tokens[2], *case) for case in ((1, 1), (2, 1), (3, 0))]
    np.testing.assert_allclose(found[2], expected, rtol=1e-12)


def test_no_internal_exit_costs_the_full_model():
    trace = make_trace(np.zeros((3, 1, 2)), exit_layers=(12,))
    np.testing.assert_array_equal(COST.row_costs(trace)[:, 0], COST.full(trace))


def test_fitting_exact_times_gives_the_model_back():
    samples = [
        TimeSample(
            batch, tokens, layers, tests, slow_milliseconds(COST, tokens, layers, tests, batch)
        )
        for batch, table in COST.batches.items()
        for tokens in table.tokens
        for layers, tests in CASES
    ]
    found = CostModel.fit(reversed(samples), dict(zip(*COST.tokenise, strict=True)), COST.info)
    assert (found.tokenise, found.info, list(found.batches)) == (COST.tokenise, COST.info, [1, 8])
    for batch, table in COST.batches.items():
        assert found.batches[batch].tokens == table.tokens
        for name in ("fixed", "layer", "test"):
            fitted, true = (getattr(each, name) for each in (found.batches[batch], table))
            np.testing.assert_allclose(fitted, true, rtol=1e-9)


def best_by_trying(done, spent):
    """Least squares on every set of columns; of those without a negative cost the nearest."""
    found, error = np.zeros(3), float(spent @ spent)
    for size in (1, 2, 3):
        for kept in map(list, combinations(range(3), size)):
            trial = np.zeros(3)
            trial[kept] = np.linalg.lstsq(done[:, kept], spent, rcond=None)[0]
            rest = float(((done @ trial - spent) ** 2).sum())
            if (trial >= 0).all() and rest < error:
                found, error = trial, rest
    return found


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000))
def test_a_fit_is_the_nearest_without_negative_costs(seed):
    rng = np.random.default_rng(seed)
    true = rng.uniform(0, 1, 3) * rng.integers(0, 2, 3)
    done = np.asarray([(1, *case) for case in CASES], dtype=np.float64)
    spent = done @ true + rng.normal(0, 0.5, len(CASES)) + 1.0
    samples = [(1, 40, *case, time) for case, time in zip(CASES, spent, strict=True)]
    one = CostModel.fit(samples).batches[1]
    found = (one.fixed[0], one.layer[0], one.test[0])
    np.testing.assert_allclose(found, best_by_trying(done, spent), atol=1e-8)


def test_without_tests_a_test_is_free():
    found = CostModel.fit([(1, 40, layers, 0, 2.0 + layers) for layers in (1, 6, 12)])
    assert found.milliseconds(40, 3, 2) == pytest.approx(5.0)


@pytest.mark.parametrize(
    "samples",
    [
        [(1, 40, 6, 0, 3.0), (1, 40, 6, 5, 4.0)],  # one depth only
        [(1, 40, layers, layers, 3.0 * layers) for layers in (1, 2, 3)],  # always as many tests
        [(1, 40, 6, 5, 3.0), (1, 40, 12, 0, 4.0)],  # two samples for three costs
        [(1, 40, 6, 0, 3.0), (1, 40, 12, 0, float("nan"))],
    ],
)
def test_samples_that_cannot_tell(samples):
    with pytest.raises(UsageError, match=r"batch size 1 and 40 tokens.*two depths"):
        CostModel.fit(samples)


def test_batch_one_is_always_measured():
    with pytest.raises(UsageError, match="batch size 1 as well"):
        CostModel.fit([(8, 40, 1, 0, 2.0), (8, 40, 2, 0, 3.0)])


def test_round_trip_through_json():
    assert CostModel.from_json(json.loads(json.dumps(COST.to_json()))) == COST


def damaged(path, value):
    document = json.loads(json.dumps(COST.to_json()))
    *parents, last = path
    inner = document
    for key in parents:
        inner = inner[key]
    inner[last] = value
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "not a cost model"),
        ([], "not a cost model"),
        ({}, "not a cost model"),
        (damaged(["format"], "de3bert-trace"), "not a cost model"),
        (damaged(["version"], 2), "format 2"),
        (damaged(["batches"], []), '"batches" must be a JSON object'),
        (damaged(["batches"], {}), "at least 1, including 1"),
        (damaged(["batches", "1"], None), '"1" must be a JSON object'),
        (damaged(["batches", "two"], {}), '"two"'),
        (damaged(["batches", "0"], COST.to_json()["batches"]["1"]), "at least 1, including 1"),
        (damaged(["batches", "1", "layer"], None), '"layer" must be a list'),
        (damaged(["batches", "1", "layer"], [1, "2", 3]), '"layer" must be a list'),
        (damaged(["batches", "1", "layer"], [1.0, 2.0]), "layer has 2 values for 3 lengths"),
        (damaged(["batches", "1", "test"], [0.1, -0.1, 0.1]), "test must be finite and not neg"),
        (damaged(["batches", "1", "fixed"], [0.1, float("inf"), 0.1]), "fixed must be finite"),
        (damaged(["batches", "1", "tokens"], [10, 10, 30]), "must increase"),
        (damaged(["batches", "1", "tokens"], [float("nan"), 10, 30]), "finite"),
        (damaged(["tokenise"], None), '"tokenise"'),
        (damaged(["tokenise", "milliseconds"], [0.1]), "tokenise has 1 values for 2"),
        (damaged(["info"], 3), '"info"'),
    ],
)
def test_damaged_json(document, message):
    with pytest.raises(De3Error, match=f"{message}.*de3 profile") as caught:
        CostModel.from_json(document)
    assert not isinstance(caught.value, UsageError)  # the file is at fault, not the request


def test_a_model_that_takes_no_time():
    with pytest.raises(De3Error, match="must take time"):
        BatchCost((10, 20), (1.0, 0.0), (1.0, 0.0), (0.1, 0.1))
