"""Certainty: what a router says of an exit, as a signal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import ExitView, Policy, Signal, calibrate, curve, replay
from de3bert.exits.calibrate import families_of
from de3bert.exits.signals.parse import SIGNALS, SignalKind
from de3bert.exits.sweep import signal_matrix
from de3bert.exits.trade_off import default_families

# Two rows, three internal exits.
SURE = [[0.25, 0.9375, 0.5], [0.875, 0.25, 0.9375]]


def routed(**changes):
    return make_trace(np.zeros((2, 4, 2)), [0, 1], certainty=np.asarray(SURE), **changes)


@pytest.mark.parametrize(
    ("line", "layers"),
    [
        ("certainty > 0.9", [2, 3]),
        ("certainty > 0.875", [2, 3]),  # strict, as BERxiT has it: the second row's 0.875 stays
        ("certainty >= 0.875", [2, 1]),
        ("certainty > 0.1 x 2", [2, 2]),
        ("certainty > 0.99", [4, 4]),
        ("certainty > 0.0", [1, 1]),
    ],
)
def test_rows_leave_where_the_router_is_sure(line, layers):
    trace, policy = routed(), Policy.parse(line)
    assert replay(trace, policy).exit_layers.tolist() == layers
    alone = [replay(trace.take([row]), policy).exit_layers[0] for row in range(2)]
    assert alone == layers


def test_certainty_is_read_and_printed():
    policy = Policy.parse("certainty > 0.90")
    assert str(policy) == "certainty > 0.9"
    assert policy.needs_certainty
    assert not policy.needs_distances
    assert not Policy.parse("entropy < 0.2").needs_certainty
    assert not Policy.parse("full").needs_certainty
    with pytest.raises(UsageError, match=r"safer when higher.*`certainty > 0\.9`"):
        Policy.parse("certainty < 0.9")


def test_the_signal_is_what_the_router_said():
    trace = routed()
    np.testing.assert_array_equal(signal_matrix(trace, Signal("certainty")), -trace.certainty)
    whole = ExitView(4, trace.logits[:, :-1], certainty=trace.certainty)
    np.testing.assert_array_equal(Signal("certainty")(whole), trace.certainty)


@pytest.mark.parametrize("rows", [1, 2])
def test_without_a_router_there_is_no_certainty(rows):
    policy = Policy.parse("certainty > 0.9")
    view = ExitView(1, np.zeros((rows, 2)))
    with pytest.raises(UsageError, match=r'"certainty" needs a router.*`entropy < 0\.2`'):
        policy.step(policy.start(rows, (1,), 2), view)
    with pytest.raises(UsageError, match="needs a router"):
        curve(replace(routed(), certainty=None), "certainty")


@pytest.mark.parametrize("rows", [1, 2])
def test_nan_decides_nothing(rows):
    policy = Policy.parse("certainty > 0.9")
    view = ExitView(3, np.zeros((rows, 2)), certainty=np.full(rows, np.nan))
    with pytest.raises(De3Error, match=r"not a number.*layer 3"):
        policy.step(policy.start(rows, (3,), 4), view)


def test_fetching_distances_keeps_the_certainty():
    sure = np.asarray([0.4])
    view = ExitView(1, np.zeros((1, 2)), fetch=lambda: np.ones((1, 2)), certainty=sure)
    assert view.fetched().certainty is sure


@pytest.mark.parametrize("needs_distances", [False, True])
def test_a_signal_of_ones_own_may_read_the_certainty(monkeypatch, needs_distances):
    monkeypatch.setattr(SIGNALS, "_parts", dict(SIGNALS._parts))
    SIGNALS.add(
        "both",
        SignalKind(
            lambda view, params: (
                view.logits[..., 0] + params["w"] * view.certainty
                + (view.distances[..., 0] if needs_distances else 0)
            ),
            defaults={"w": 2.0},
            needs_distances=needs_distances,
            needs_certainty=True,
            one_row=lambda logits, distances, params: (
                logits[0] + params["w"] * params["certainty"]
                + (distances[0] if needs_distances else 0)
            ),
        ),
    )  # fmt: skip
    view = ExitView(1, np.asarray([[0.25, 0.0]]), np.asarray([[0.5, 0.0]]), certainty=np.ones(1))
    expected = 2.25 + 0.5 * needs_distances
    signal = Signal("both")
    assert signal.of_row(view) == expected
    assert signal(view).tolist() == [expected]


def test_a_signal_that_does_not_ask_is_not_told(monkeypatch):
    monkeypatch.setattr(SIGNALS, "_parts", dict(SIGNALS._parts))
    seen = []

    def one_row(logits, distances, params):
        seen.append((distances, params))
        return logits[0]

    kind = SignalKind(lambda view, params: view.logits[:, 0], {"w": 1.0}, one_row=one_row)
    SIGNALS.add("plain", kind)
    view = ExitView(1, np.zeros((1, 2)), np.zeros((1, 2)), certainty=np.ones(1))
    Signal("plain").of_row(view)
    assert seen == [(None, {"w": 1.0})]


def test_calibration_reads_the_router_where_there_are_no_distances():
    trace = random_trace(rows=150)
    assert [str(each) for each in families_of(trace, None, (1.0,))] == ["edr(lambda=1.0)"]
    assert default_families(trace) == ["edr(lambda=1.0)", "entropy"]
    routed = replace(trace, distances=None)
    assert default_families(routed) == ["certainty", "entropy"]
    made = calibrate(routed, "layers=2.0", name="2x")
    assert made.policy.signal == Signal("certainty")
    assert made.measured["layer_speedup"] >= 2.0
    plain = replace(routed, certainty=None)
    assert default_families(plain) == ["entropy"]
    assert calibrate(plain, "layers=2.0", name="2x").policy.signal == Signal("entropy")
