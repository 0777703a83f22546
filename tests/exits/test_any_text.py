"""Whatever text or JSON comes in: it is read, or refused by an error of ours."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits.traces import random_trace, small_traces

from de3bert.errors import De3Error, UsageError
from de3bert.exits import CostModel, OperatingPoint, Policy, Signal, Target, curve
from de3bert.exits.family import Family
from de3bert.exits.signals.registry import SIGNALS
from de3bert.tasks import TASKS

PIECES = [
    *SIGNALS, "full", "oracle", "patience", "layer", "bandit", "layers", "drop", "accuracy",
    "speedup", "latency", "window", "mean", "max", "x", "(", ")", "<", ">", "<=", ">=", "=", ",",
    ":", "/", "%", "ms", "lambda", "arms", "c", "mu", "0", "1", "2", "-1", "0.5", "1e999", "nan",
    "inf", "9" * 30, "\u0663", "\x00", "\x1b[2J", "\u202e", "\ud800", "\n", "\t", " ", "  ",
]  # fmt: skip
LINES = st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
NUMBERS = [[10**400], [float("nan")], [True], [1e308], [-1], "9" * 5000, "\u00b2", "\u0663"]
READERS = [Policy.parse, Family.parse, Target.parse, Signal.parse]
READERS += [task.policy for task in map(TASKS.__getitem__, TASKS)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | LINES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@pytest.mark.parametrize("read", READERS)
@settings(max_examples=400, deadline=None)
@given(LINES)
def test_a_line_is_read_or_refused(read, line):
    with contextlib.suppress(UsageError):
        found = read(line)
        assert read(str(found)) == found


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", [None, 3, 0.5, b"full", ["full"], {"full": 1}, True])
def test_what_is_no_text_is_refused(read, value):
    with pytest.raises(UsageError):
        read(value)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "line", ["9" * 5000, "entropy " * 5000, " " * 200_000 + "<", "bandit(" + "0/" * 200_000, "("]
)
def test_huge_lines_are_refused_at_once(read, line):
    with pytest.raises(UsageError):
        read(line)


@settings(max_examples=300, deadline=None)
@given(JSON, st.sampled_from(["name", "policy", "target", "measured"]), st.data())
def test_a_stored_point_is_read_or_refused(value, key, data):
    keys = ["rows", "metric", "score", "score_interval", "data", "warnings", "layers_mean"]
    measured = data.draw(st.dictionaries(st.sampled_from(keys), JSON))
    document = {"name": "2x", "policy": "full", "target": "full", "measured": measured}
    for candidate in (value, {**document, key: value}, document):
        with contextlib.suppress(De3Error):
            OperatingPoint.from_json(candidate)


@settings(max_examples=200, deadline=None)
@given(JSON, st.sampled_from(["batches", "tokenise", "info", "version", "format"]), st.data())
def test_a_stored_profile_is_read_or_refused(value, key, data):
    column = {"tokens": [8], "fixed": [1.0], "layer": [1.0], "test": [0.1]}
    document = {
        "format": "de3bert-cost",
        "version": 1,
        "batches": {"1": column},
        "tokenise": {"tokens": [8], "milliseconds": [0.1]},
        "info": {},
    }
    value = value if data.draw(st.booleans()) else data.draw(st.sampled_from(NUMBERS))
    assert CostModel.from_json(document).batches
    inner = {**document, "batches": {"1": {**column, "fixed": value}}}
    sizes = {**document, "batches": {str(value): column, "1": column}}
    for candidate in (value, {**document, key: value}, inner, sizes):
        with contextlib.suppress(De3Error):
            CostModel.from_json(candidate)


@settings(max_examples=60, deadline=None)
@given(small_traces(), st.sampled_from([*SIGNALS]), st.integers(1, 2))
def test_every_policy_of_a_curve_reads_back(trace, name, count):
    try:
        points = curve(trace, name, count=count)
    except UsageError:  # a trace without distances or a router
        return
    for index in range(len(points)):
        policy = points.policy(index)
        assert Policy.parse(str(policy)) == policy


def test_every_policy_of_a_longer_curve_reads_back():
    for name in SIGNALS:
        points = curve(random_trace(rows=200), name)
        assert all(
            Policy.parse(str(points.policy(k))) == points.policy(k) for k in range(len(points))
        )
