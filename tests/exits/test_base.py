"""Speed-ups of models that are not whole: relative to the backbone they are compared with."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import De3Error
from de3bert.exits import Policy, calibrate, curve
from de3bert.exits.calibrate import measure

FAMILIES = ["entropy", "patience", "layers", "oracle", "bandit"]


def test_a_whole_model_at_full_depth_is_exactly_one():
    for base in (None, 6):
        trace = replace(random_trace(rows=30), base_depth=base)
        assert measure(trace, Policy.parse("full"))["layer_speedup"] == 1.0
        assert curve(trace, "entropy").layer_speedup[0] == 1.0


def test_half_of_a_model_is_twice_as_fast():
    trace = replace(random_trace(rows=30), base_depth=12)
    assert trace.depth == 6
    assert measure(trace, Policy.parse("full"))["layer_speedup"] == 2.0
    assert measure(trace, Policy.parse("layer(3)"))["layer_speedup"] == 4.0


def test_a_cascade_that_falls_through_is_slower_than_its_backbone():
    """CascadeBERT's own log: 321 of 408 rows at cost 2, the others at 14, against 12 layers."""
    sure = np.where(np.arange(408) < 321, 9.0, 0.0)
    logits = np.zeros((408, 2, 2))
    logits[:, 0, 0] = sure
    trace = make_trace(logits, np.zeros(408, dtype=int), exit_layers=(2, 14), base_depth=12)
    seen = measure(trace, Policy.parse("max_probability > 0.8"))
    assert seen["layer_speedup"] == pytest.approx(2.632258, abs=5e-7)
    assert measure(trace, Policy.parse("full"))["layer_speedup"] == pytest.approx(12 / 14)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_curve_is_the_same_one_with_another_reference(family):
    trace = random_trace(rows=80)
    own, other = curve(trace, family), curve(replace(trace, base_depth=9), family)
    assert (own.base, own.depth, other.base, other.depth) == (6, 6, 9, 6)
    assert other.thresholds.tolist() == own.thresholds.tolist()
    assert other.layers_mean.tolist() == own.layers_mean.tolist()
    assert other.score.tolist() == own.score.tolist()
    np.testing.assert_allclose(other.layer_speedup, 1.5 * own.layer_speedup)
    assert other.to_json()["base"] == 9
    assert json.loads(json.dumps(own.to_json()))["base"] == own.to_json()["depth"] == 6


def test_what_is_asked_of_a_curve_refers_to_the_base():
    trace = random_trace(rows=80)
    own, other = curve(trace, "entropy"), curve(replace(trace, base_depth=9), "entropy")
    assert other.at(layer_speedup=3.0) == pytest.approx(own.at(layer_speedup=2.0))
    assert other.index_at(layer_speedup=3.0) == own.index_at(layer_speedup=2.0)
    # The mean over a range of speed-ups does not change when all of them grow by one factor.
    assert other.area(2.25, 4.5) == pytest.approx(own.area(1.5, 3.0))


def test_a_target_in_layers_refers_to_the_base():
    trace = random_trace(rows=80)
    whole = calibrate(trace, "layers=2.0", name="2x", family="entropy")
    cut = calibrate(replace(trace, base_depth=9), "layers=3.0", name="3x", family="entropy")
    assert cut.policy == whole.policy
    assert cut.measured["layer_speedup"] == pytest.approx(1.5 * whole.measured["layer_speedup"])
    with pytest.raises(De3Error, match=r"with a layer speed-up of 9"):
        calibrate(replace(trace, base_depth=9), "layers=9.5", name="x", family="entropy")
