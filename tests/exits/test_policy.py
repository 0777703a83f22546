"""Policies: one line in, the same line out, and a fold over the exits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exits.traces import random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import ExitView, Policy
from de3bert.exits.replay import exit_indices

LINES = [
    "edr(lambda=1.0) < 0.4",
    "entropy < 0.2",
    "entropy <= 0.2",
    "max_probability > 0.9",
    "max_probability >= 0.9",
    "entropy < 0.2 x 2",
    "raw_energy < -1e-07",
    "patience(6)",
    "layer(6)",
    "full",
    "oracle",
]


@pytest.mark.parametrize("line", LINES)
def test_round_trip(line):
    policy = Policy.parse(line)
    assert str(policy) == line
    assert Policy.parse(f"  {line} ") == policy
    assert Policy.from_json(policy.to_json()) == policy


@given(st.floats(0, 1), st.floats(0, 1e6), st.integers(1, 20))
def test_round_trip_of_any_number_is_exact(threshold, weight, count):
    line = f"edr(lambda={weight!r}) < {threshold!r} x {count}"
    policy = Policy.parse(line)
    assert policy.rule.threshold == threshold
    assert dict(policy.signal.params) == {"lambda": weight}
    assert Policy.parse(str(policy)) == policy
    assert policy.rule.count == count


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_signal_without_ends_takes_any_threshold(threshold):
    policy = Policy.parse(f"raw_energy < {threshold!r}")
    assert policy.rule.threshold == threshold
    assert Policy.parse(str(policy)) == policy


def test_short_forms_are_completed():
    assert str(Policy.parse("edr<.40")) == "edr(lambda=1.0) < 0.4"
    assert str(Policy.parse("entropy < 0.2 x 1")) == "entropy < 0.2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entropi < 0.2", 'Did you mean "entropy"'),
        ("patiense(3)", 'Did you mean "patience"'),
        ("entropy > 0.2", "Write `entropy < 0.2`"),
        ("max_probability < 0.9", "Write `max_probability > 0.9`"),
        ("entropy < nan", "finite number"),
        ("entropy < inf", "finite number"),
        ("entropy < high", "finite number"),
        ("entropy < 0.2 x 0", "whole number from 1"),
        ("entropy < 0.2 x -2", "whole number from 1"),
        ("entropy < 0.2 x 1.5", "whole number from 1"),
        ("entropy", "needs a threshold. Write for example `entropy < 0.2`"),
        ("max_probability", "> 0.9"),
        ("patience", r"Write for example `patience\(6\)`"),
        ("patience(0)", "whole number from 1"),
        ("patience(-1)", "whole number from 1"),
        ("layer(two)", "whole number from 1"),
        ("full(3)", "takes no number"),
        ("", "Examples"),
        ("entropy < 0.2 and more", "Cannot read the policy"),
        ("0.2 < entropy < 0.4", "Cannot read the policy"),
        ("entropy =< 0.2", "Cannot read"),
        ("edr(lambda=1) < ", "Cannot read"),
        ("entropy < -5", "lies between 0 and 1.*threshold of -5"),
        ("entropy < 2", "lies between 0 and 1"),
        ("max_probability > 1.5", "lies between 0 and 1"),
        ("edr(lambda=2) < 1e300", "lies between 0 and 1"),
        ("edr(lambda=1e999) < 0.2", "lambda of edr must be finite"),
        ("entropy < \u0660.\u0665", "finite number"),
        ("entropy < 1_0e-3", "finite number"),
        ("entropy < 1e999", "finite number"),
        (f"entropy < 0.{'1' * 500}", "at most 400 characters"),
        ("patience(\u0663)", "whole number from 1"),
        (f"patience({10**30})", "at most 999999"),
        (f"patience({'9' * 5000})", "at most 400 characters"),
        ("layer(99999999999)", "at most 999999"),
        (f"entropy < 0.2 x {'9' * 300}", "at most 999999"),
        ("entropy\0 < 0.2", r"control characters, got .entropy\\x00 < 0.2"),
        ("entropy < 0.2\nfull", "control characters"),
        ("\x1b[31mfull", "control characters"),
        (None, "one line of text, got None"),
        (b"full", "one line of text"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(UsageError, match=message):
        Policy.parse(text)


def test_a_stored_policy_must_be_text():
    with pytest.raises(De3Error, match="one line of text"):
        Policy.from_json({"entropy": 0.2})


def test_what_it_needs():
    assert Policy.parse("edr < 0.4").needs_distances
    assert not Policy.parse("entropy < 0.4").needs_distances
    assert not Policy.parse("patience(2)").needs_distances
    assert Policy.parse("oracle").needs_labels
    assert not Policy.parse("full").needs_labels
    assert Policy.parse("full").signal is None
    assert str(Policy.parse("edr < 0.4").signal) == "edr(lambda=1.0)"


def test_strict_and_not_strict():
    view = ExitView(1, np.zeros((1, 2)))  # entropy exactly 1
    for line, leaves in [("entropy < 1.0", False), ("entropy <= 1.0", True)]:
        policy = Policy.parse(line)
        leave, _ = policy.step(policy.start(1, (1,), 2), view)
        assert leave.tolist() == [leaves]


def test_threshold_zero_never_leaves():
    policy = Policy.parse("entropy < 0")
    view = ExitView(1, np.asarray([[1000.0, 0.0]]))  # entropy exactly 0
    assert policy.step(policy.start(1, (1,), 2), view)[0].tolist() == [False]


def test_a_fixed_layer_must_exist():
    policy = Policy.parse("layer(3)")
    with pytest.raises(UsageError, match=r"no exit at layer 3\. Exits are at: 2, 4, 6"):
        policy.start(1, (2, 4), 6)
    assert Policy.parse("layer(6)").start(1, (2, 4), 6) is not None


def test_the_oracle_cannot_run_live():
    with pytest.raises(UsageError, match="true labels"):
        Policy.parse("oracle").start(1, (1,), 2)


@pytest.mark.parametrize("line", ["entropy < 0.5", "patience(1)", "full"])
def test_nan_logits_stop_the_fold(line):
    policy = Policy.parse(line)
    with pytest.raises(De3Error, match="not a number"):
        policy.step(policy.start(1, (5,), 6), ExitView(5, np.asarray([[np.nan, 0.0]])))


def test_rows_must_match_the_state():
    policy = Policy.parse("full")
    with pytest.raises(ValueError, match="keep"):
        policy.step(policy.start(3, (1,), 2), ExitView(1, np.zeros((2, 2))))


@pytest.mark.parametrize("line", ["edr < 0.3", "entropy < 0.5 x 2", "patience(2)", "layer(3)"])
def test_dropping_rows_does_not_change_the_others(line):
    """The same fold without dropping, and one row at a time, gives the same exits."""
    trace, policy = random_trace(rows=60), Policy.parse(line)
    dropped = exit_indices(trace, policy)
    state = policy.start(trace.rows, trace.exit_layers[:-1], trace.depth)
    kept = np.full(trace.rows, trace.exits - 1)
    for number in range(trace.exits - 1):
        leave, state = policy.step(state, trace.view(number))
        kept = np.where(leave, np.minimum(kept, number), kept)
    alone = [exit_indices(trace.take(np.asarray([row])), policy)[0] for row in range(trace.rows)]
    assert dropped.tolist() == kept.tolist() == alone
    assert len(set(alone)) > 1 or line == "layer(3)"
