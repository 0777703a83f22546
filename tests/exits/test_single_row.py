"""The step of a single row: plain floats against the array functions, in value and in decision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits import slow
from tests.exits.traces import small_traces

from de3bert.errors import De3Error, UsageError
from de3bert.exits import ExitView, Policy, Signal
from de3bert.exits.replay import exit_indices
from de3bert.exits.rules import COMPARE, Threshold
from de3bert.exits.signals import single_row
from de3bert.exits.signals.parse import SIGNALS, SignalKind

EXTREME = [0.0, -0.0, 1.0, -math.inf, -1e30, -1e31, 1e30, 700.0, -745.0, 36.7, 1e308, -1e308]
LOGIT = st.floats(-40, 40) | st.floats(-40, 40, width=32) | st.sampled_from(EXTREME)
NEARBY = [0.0, -1e-8, 1e-13, 1e-12, 0.5, 2.0, 1e-300]
DISTANCE = st.floats(0, 2) | st.floats(0, 2, width=32) | st.sampled_from(NEARBY)
WEIGHT = st.sampled_from([0.0, 0.25, 0.667, 1.0, 1.5, 3.0])
NAMES = sorted(SIGNALS)
LINES = ["edr < 0.5", "edr < 0.6 x 2", "certainty >= 0.9", "patience(1)", "full"]


@st.composite
def rows(draw: st.DrawFn) -> ExitView:
    classes = draw(st.integers(2, 6))
    sides = [draw(st.lists(each, min_size=classes, max_size=classes)) for each in (LOGIT, DISTANCE)]
    sure = draw(st.floats(0, 1) | st.floats(0, 1, width=32) | st.just(math.nan))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    with np.errstate(over="ignore"):  # 1e308 is infinite in float32: a NaN that must be reported
        return ExitView(
            4,
            *(np.asarray([side], dtype=dtype) for side in sides),
            certainty=np.asarray([sure], dtype=dtype),
        )


def signal_of(name: str, weight: float) -> Signal:
    return Signal(name, (("lambda", weight),) if name == "edr" else ())


def value_of(signal: Signal, view: ExitView) -> float | None:
    """By the array functions; None when they report NaN."""
    try:
        with np.errstate(all="ignore"):
            return float(signal(view)[0])
    except De3Error:
        return None


def step(policy: Policy, view: ExitView, rows: int = 1):
    with np.errstate(all="ignore"):
        return policy.step(policy.start(rows, (4,), 5), view)


def test_every_signal_has_its_one_row_form():
    assert NAMES == [
        "certainty",
        "distance_ratio",
        "edr",
        "energy",
        "entropy",
        "max_probability",
        "raw_energy",
    ]
    assert all(SIGNALS[name].one_row for name in NAMES)


@settings(max_examples=400, deadline=None)
@given(rows(), st.sampled_from(NAMES), WEIGHT)
def test_a_row_alone_has_the_value_of_the_array_function(view, name, weight):
    signal = signal_of(name, weight)
    expected = value_of(signal, view)
    if expected is None:
        with pytest.raises(De3Error, match=r"not a number.*layer 4"):
            signal.of_row(view)
    else:
        assert signal.of_row(view) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@settings(max_examples=400, deadline=None)
@given(rows(), st.sampled_from(NAMES), WEIGHT, st.sampled_from(["", "="]), st.data())
def test_a_row_alone_leaves_exactly_when_the_array_function_says_so(view, name, weight, more, data):
    """Also with the threshold on the value itself, or on the next float to it."""
    signal = signal_of(name, weight)
    value = value_of(signal, view)
    if value is None:
        return
    beside = [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    threshold = data.draw(st.sampled_from(beside) | st.floats(-2, 2))
    comparison = (">" if signal.rising else "<") + more
    leave, state = step(Policy(Threshold(signal, comparison, threshold)), view)
    expected = bool(COMPARE[comparison](value, threshold))
    assert (leave.tolist(), leave.dtype) == ([expected], np.bool_)
    assert (state.run.tolist(), state.run.dtype) == ([int(expected)], np.int64)


@settings(max_examples=100, deadline=None)
@given(small_traces(), st.sampled_from(LINES))
def test_rows_one_by_one_leave_as_they_do_together(trace, line):
    policy = Policy.parse(line)
    together = exit_indices(trace, policy)
    alone = [exit_indices(trace.take([row]), policy)[0] for row in range(trace.rows)]
    assert together.tolist() == alone


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=2, max_size=6), st.integers(-1, 5))
def test_patience_of_one_row_is_that_of_the_array(row, before):
    policy, state = Policy.parse("patience(1)"), Policy.parse("full").start(2, (4,), 5)
    state.answer[:] = before
    leave, after = policy.step(state, ExitView(4, np.asarray([row, row])))
    single, alone = policy.step(state.keep(np.asarray([True, False])), ExitView(4, np.array([row])))
    assert [*single, *alone.run, *alone.answer] == [leave[0], after.run[0], after.answer[0]]
    assert alone.answer.dtype == np.int64


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("logits", "distances"),
    [
        ([0.0, -math.inf], [0.1, 0.7]),  # the class already taken must not come second
        ([0.0, -math.inf, -1e31], [0.1, 0.7, 0.3]),
        ([1000.0, 0.0], [0.0, 1.0]),  # both parts of EDR are 0
        ([2.0, 2.0, 2.0], [0.3, 0.2, 0.1]),
        ([0.0, 1.0], [0.0, 0.0]),
        ([0.0, 1.0], [1e-13, 0.0]),
        ([0.0, 1.0], [-1e-8, -1e-9]),
        ([-900.0, -900.0], [0.4, 0.1]),
    ],
)
def test_the_guards_are_those_of_the_array_functions(name, logits, distances):
    view = ExitView(4, np.asarray([logits]), np.asarray([distances]), certainty=np.asarray([0.3]))
    expected = float(Signal(name)(view)[0])
    assert Signal(name).of_row(view) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("error", [-1e-13, 1e-13])
def test_within_rounding_of_the_threshold_the_array_function_decides(monkeypatch, error):
    monkeypatch.setattr(SIGNALS, "_parts", dict(SIGNALS._parts))
    exact = SignalKind(
        lambda view, params: view.logits[:, 0],
        one_row=lambda logits, distances, params: logits[0] + error,
    )
    SIGNALS.add("first", exact)
    view = ExitView(4, np.asarray([[0.3, 9.0]]))
    assert step(Policy.parse(f"first < {math.nextafter(0.3, 1)!r}"), view)[0].tolist() == [True]
    assert step(Policy.parse("first < 0.3"), view)[0].tolist() == [False]


def test_plain_python_agrees_with_the_definition():
    logits, distances = [0.3, 2.0, -1.0], [0.9, 0.2, 0.4]
    local, ratio = slow.entropy(logits), slow.distance_ratio(logits, distances)
    assert single_row.entropy(logits, None, {}) == pytest.approx(local, rel=1e-14)
    assert single_row.distance_ratio(logits, distances, {}) == pytest.approx(ratio, rel=1e-14)
    fused = single_row.edr(logits, distances, {"lambda": 1.5})
    assert fused == pytest.approx(slow.edr(local, ratio, 1.5), rel=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_is_never_swallowed(name, place):
    logits, distances = np.asarray([[1.0, 3.0, 2.0]]), np.asarray([[0.3, 0.2, 0.1]])
    broken = logits.copy()
    broken[0, place] = np.nan
    signal = Signal(name)
    # What only ranks the logits or does not read them has a value, as in the array function.
    if name not in ("distance_ratio", "certainty"):
        with pytest.raises(De3Error, match=r"signal.*not a number"):
            signal.of_row(ExitView(4, broken, distances))
    with pytest.raises(De3Error, match="logit at layer 4 is not a number"):
        step(Policy.parse(f"{name} {'>' if signal.rising else '<'} 0.5"), ExitView(4, broken))
    if signal.needs_distances and place > 0:  # class 0 is neither first nor second
        distances[0, place] = np.nan
        with pytest.raises(De3Error, match=r"signal.*not a number"):
            signal.of_row(ExitView(4, logits, distances))
    if signal.needs_certainty:
        with pytest.raises(De3Error, match=r"signal.*not a number"):
            signal.of_row(ExitView(4, logits, certainty=np.asarray([np.nan])))


@pytest.mark.parametrize("name", ["entropy", "max_probability", "distance_ratio", "edr"])
def test_one_class_is_the_same_error(name):
    with pytest.raises(UsageError, match="at least 2 classes"):
        Signal(name).of_row(ExitView(4, np.zeros((1, 1)), np.zeros((1, 1))))


def test_missing_distances_are_the_same_error():
    with pytest.raises(UsageError, match="needs distances"):
        step(Policy.parse("edr < 0.4"), ExitView(4, np.zeros((1, 2))))


def test_many_classes_go_the_array_way(monkeypatch):
    classes = single_row.FEW_CLASSES + 1
    view = ExitView(4, np.linspace(0, 1, classes)[None])
    monkeypatch.setattr(single_row.math, "exp", lambda value: pytest.fail("went the slow way"))
    assert Signal("entropy").of_row(view) == Signal("entropy")(view)[0]
    broken = view.logits.copy()
    broken[0, -1] = np.nan
    with pytest.raises(De3Error, match="logit at layer 4"):
        step(Policy.parse("full"), ExitView(4, broken))


def test_a_signal_without_one_row_goes_the_array_way(monkeypatch):
    monkeypatch.setattr(SIGNALS, "_parts", dict(SIGNALS._parts))
    SIGNALS.add("gap", SignalKind(lambda view, params: view.logits.min(-1)))
    view = ExitView(4, np.asarray([[4.0, -1.0]]))
    assert step(Policy.parse("gap < 0"), view)[0].tolist() == [True]
    assert step(Policy.parse("gap < -1"), view)[0].tolist() == [False]
