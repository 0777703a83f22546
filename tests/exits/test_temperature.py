"""Temperatures: fitted, applied, and what happens at the ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.exits import slow
from tests.exits.traces import make_trace, random_trace, small_traces

from de3bert.errors import UsageError
from de3bert.exits import Trace, fit_temperatures, signals
from de3bert.exits.temperature import HIGHEST, LOWEST


def nll(trace: Trace, number: int, temperature: float) -> float:
    """By the definition, one row at a time."""
    total = 0.0
    for row, label in zip(trace.logits[:, number].tolist(), trace.labels, strict=True):
        cooled = [value / temperature for value in row]
        peak = max(cooled)
        total += peak + math.log(sum(math.exp(z - peak) for z in cooled)) - cooled[label]
    return total / trace.rows


def drawn(temperatures: list[float], rows: int = 40_000) -> Trace:
    """Rows whose labels are drawn from softmax(z), with logits T z at each exit."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(rows, 3)) * 1.5
    chances = signals.probabilities(truth)
    labels = (chances.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return make_trace(truth[:, None] * np.asarray(temperatures)[:, None], labels)


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(2.0, [0.522879, 0.279491, 0.197630]), (0.5, [0.907407, 0.074074, 0.018519])],
)
def test_a_temperature_softens_or_sharpens(temperature, expected):
    trace = make_trace(np.log([[[0.7, 0.2, 0.1]]]), [0])
    cooled = trace.tempered([temperature])
    chances = signals.probabilities(cooled.logits.astype(np.float64))[0, 0]
    np.testing.assert_allclose(chances, expected, atol=1e-6)


def test_a_known_temperature_is_found_again():
    wanted = [0.4, 1.0, 2.5, 6.0]
    assert fit_temperatures(drawn(wanted)) == pytest.approx(wanted, rel=0.03)


def test_the_fit_is_the_best_of_a_fine_grid():
    trace = random_trace(rows=120, exits=3)
    grid = np.exp(np.linspace(math.log(LOWEST), math.log(HIGHEST), 1500))
    for number, found in enumerate(fit_temperatures(trace)):
        best = min(grid, key=lambda each: nll(trace, number, each))
        assert found == pytest.approx(best, rel=0.005)


@settings(max_examples=60, deadline=None)
@given(small_traces())
def test_never_worse_than_before_and_no_answer_changes(trace):
    found = fit_temperatures(trace)
    assert len(found) == trace.exits
    for number, temperature in enumerate(found):
        assert LOWEST <= temperature <= HIGHEST
        assert nll(trace, number, temperature) <= nll(trace, number, 1.0) + 1e-12
    assert trace.tempered(found).predictions.tolist() == trace.predictions.tolist()


@pytest.mark.parametrize("gap", [0.5, 5.0, 50.0, 300.0])
def test_an_exit_without_a_mistake_gets_the_lowest(gap):
    logits = gap * np.eye(3)[[0, 1, 2, 2, 1]][:, None]
    assert fit_temperatures(make_trace(logits, [0, 1, 2, 2, 1])) == (LOWEST,)


def test_an_exit_that_is_always_wrong_gets_the_highest():
    logits = 5 * np.eye(2)[[1, 0, 1]][:, None]
    assert fit_temperatures(make_trace(logits, [0, 1, 0])) == (HIGHEST,)


def test_an_exit_that_says_nothing_is_left_alone():
    assert fit_temperatures(make_trace(np.zeros((4, 2, 3)), [0, 1, 2, 0])) == (1.0, 1.0)


def test_only_the_logits_change():
    trace = replace(random_trace(rows=9, exits=3), base_depth=12)
    cooled = trace.tempered((2.0, 1.0, 0.5))
    np.testing.assert_allclose(cooled.logits[:, 0], trace.logits[:, 0] / 2)
    assert np.array_equal(cooled.logits[:, 1], trace.logits[:, 1])
    np.testing.assert_allclose(cooled.logits[:, 2], trace.logits[:, 2] * 2)
    assert cooled.logits.dtype == np.float32
    for name in ("distances", "certainty", "labels", "tokens", "exit_layers", "base_depth"):
        assert np.array_equal(getattr(cooled, name), getattr(trace, name))
    assert slow.entropy(cooled.logits[0, 0].tolist()) > slow.entropy(trace.logits[0, 0].tolist())


@pytest.mark.parametrize("wrong", [(1.0, 1.0), (1.0, 0.0, 1.0), (1.0, -2, 1.0), (1, math.nan, 1)])
def test_temperatures_that_do_not_fit(wrong):
    with pytest.raises(UsageError, match="needs 3 temperatures above 0"):
        random_trace(rows=3, exits=3).tempered(wrong)


def test_labels_are_needed():
    with pytest.raises(UsageError, match="no labels"):
        fit_temperatures(make_trace(np.zeros((2, 2, 2))))
