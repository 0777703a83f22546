"""Signals by name: reading, printing, checking."""

from __future__ import annotations

import numpy as np
import pytest
from tests.exits import slow
from tests.exits.traces import random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import ExitView, Signal
from de3bert.exits.signals.parse import SIGNALS, SignalKind


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("entropy", "entropy"),
        (" edr ", "edr(lambda=1.0)"),
        ("edr( lambda = 0.667 )", "edr(lambda=0.667)"),
        ("edr(lambda=0.1)", "edr(lambda=0.1)"),
        ("max_probability", "max_probability"),
        ("energy()", "energy"),
    ],
)
def test_parse_and_print(text, printed):
    signal = Signal.parse(text)
    assert str(signal) == printed
    assert Signal.parse(printed) == signal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entropi", 'Did you mean "entropy"'),
        ("edr(lamda=1)", 'Did you mean "lambda"'),
        ("edr(lambda=-1)", ">= 0"),
        ("edr(lambda=inf)", "finite"),
        ("edr(lambda=nan)", "parameter=number"),
        ("edr(1.0)", "parameter=number"),
        ("edr(lambda=1, lambda=2)", "twice"),
        ("entropy(lambda=1)", "takes no parameters"),
        ("edr(lambda=1", "Cannot read"),
        ("", "Cannot read"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(UsageError, match=message):
        Signal.parse(text)


def test_flags():
    assert Signal.parse("edr").needs_distances
    assert Signal.parse("distance_ratio").needs_distances
    assert not Signal.parse("entropy").needs_distances
    assert Signal.parse("max_probability").rising
    assert not Signal.parse("energy").rising


def test_every_signal_matches_plain_python():
    trace = random_trace(rows=40)
    for number in range(trace.exits - 1):
        view = trace.view(number)
        logits, distances = view.logits.tolist(), view.distances.tolist()
        local = [slow.entropy(row) for row in logits]
        ratio = [slow.distance_ratio(*both) for both in zip(logits, distances, strict=True)]
        fused = [slow.edr(*both, 2.0) for both in zip(local, ratio, strict=True)]
        np.testing.assert_allclose(Signal.parse("entropy")(view), local, atol=1e-12)
        np.testing.assert_allclose(Signal.parse("distance_ratio")(view), ratio, atol=1e-12)
        np.testing.assert_allclose(Signal.parse("edr(lambda=2)")(view), fused, atol=1e-12)


def test_a_whole_matrix_at_once():
    trace, signal = random_trace(rows=30), Signal.parse("edr")
    matrix = signal(ExitView(0, trace.logits[:, :-1], trace.distances))
    for number in range(trace.exits - 1):
        np.testing.assert_allclose(matrix[:, number], signal(trace.view(number)), atol=1e-14)


def test_sure_rows_do_not_tie():
    view = ExitView(1, np.asarray([[20, 0], [22, 0]], dtype=np.float32))
    surer = Signal.parse("max_probability")(view)
    assert surer[0] < surer[1] < 1


def test_missing_distances_say_what_to_do():
    with pytest.raises(UsageError, match=r"needs distances.*entropy < 0\.2"):
        Signal.parse("edr")(ExitView(1, np.zeros((2, 2))))


def test_nan_is_reported():
    view = ExitView(3, np.asarray([[1.0, 0.0]]), np.asarray([[np.nan, 0.5]]))
    with pytest.raises(De3Error, match=r"not a number.*layer 3"):
        Signal.parse("edr")(view)


def test_a_signal_of_your_own(monkeypatch):
    monkeypatch.setattr(SIGNALS, "_parts", dict(SIGNALS._parts))
    SIGNALS.add("gap", SignalKind(lambda view, params: view.logits.min(-1), {"scale": 2.0}))
    signal = Signal.parse("gap(scale=3)")
    assert str(signal) == "gap(scale=3.0)"
    assert signal(ExitView(1, np.asarray([[4.0, -1.0]]))).tolist() == [-1.0]
