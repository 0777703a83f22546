"""Replay against golden numbers and against plain Python, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits import slow
from tests.exits.traces import constant_predictions, make_trace, random_trace, small_traces

from de3bert.errors import UsageError
from de3bert.exits import Policy, Signal, replay
from de3bert.exits.family import Family
from de3bert.exits.layer_speedup import exit_histogram
from de3bert.exits.replay import margin

FALLING = ["entropy", "edr(lambda=0.667)", "distance_ratio", "energy", "raw_energy"]


def leaves_at(trace, line):
    return replay(trace, Policy.parse(line)).exit_layers.tolist()


def golden_trace():
    """Four layers and three classes; the third distance is never looked at."""
    chances = [[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.9, 0.08, 0.02], [0.9, 0.05, 0.05]]
    distances = [[0.6, 0.3, 9.0], [0.2, 0.8, 9.0], [0.1, 0.9, 9.0]]
    return make_trace(np.log([chances]), [0], [distances])


def test_golden_signals():
    trace = golden_trace()
    for line, expected in [
        ("entropy", [0.937231, 0.729847, 0.341452]),
        ("distance_ratio", [0.75, 0.125, 0.055556]),
        ("edr(lambda=1.0)", [0.833227, 0.213444, 0.095563]),
        ("edr(lambda=1.5)", [0.815136, 0.186984, 0.083532]),
    ]:
        found = slow.signal_rows(trace, Signal.parse(line))[0]
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("weight", "threshold", "layer"),
    [
        *[(1.0, tau, m) for tau, m in [(0, 4), (0.05, 4), (0.1, 3), (0.2, 3), (0.22, 2)]],
        *[(1.0, tau, m) for tau, m in [(0.8, 2), (0.9, 1)]],
        *[(1.5, tau, m) for tau, m in [(0.1, 3), (0.2, 2), (0.9, 1)]],
        *[(0.0, tau, m) for tau, m in [(0.25, 4), (0.4, 3), (0.75, 2), (0.9, 2), (1.0, 1)]],
    ],
)
def test_golden_exit_layers(weight, threshold, layer):
    assert leaves_at(golden_trace(), f"edr(lambda={weight}) < {threshold}") == [layer]


@pytest.mark.parametrize(
    ("answers", "patience", "layer"),
    [
        ([1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], 3, 6),
        ([1] * 12, 1, 2),
        ([1] * 12, 6, 7),
        ([1] * 12, 12, 12),
        ([1] * 12, 11, 12),
        ([1] * 12, 10, 11),
        ([0, 1] * 6, 1, 12),
    ],
)
def test_golden_patience(answers, patience, layer):
    assert leaves_at(constant_predictions(answers), f"patience({patience})") == [layer]


def entropies(values):
    """A two-class trace with exactly these entropies at its exits, to ten decimals."""
    grid = np.linspace(0, 40, 2_000_001)
    chance = 1 / (1 + np.exp(-grid))
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(chance < 1, (1 - chance) * np.log2(1 - chance), 0)
    table = -(chance * np.log2(chance) + rest)
    logits = np.interp(values, table[::-1], grid[::-1])
    return make_trace([[[value, 0.0] for value in logits]], [0])


@pytest.mark.parametrize(
    ("values", "count", "layer"),
    [
        ([0.9, 0.1, 0.3, 0.1, 0.1, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1], 2, 5),
        ([0.1] * 12, 1, 1),
        ([0.1] * 12, 3, 3),
        ([0.1] * 12, 12, 12),
        ([0.9] * 12, 1, 12),
    ],
)
def test_golden_patience_with_a_threshold(values, count, layer):
    assert leaves_at(entropies(values), f"entropy < 0.2 x {count}") == [layer]


def test_golden_energy_exits():
    """Signals (.4, .25, .1) and (.6, .5, .45): z = log(1/E - 1) - log 2 for two equal logits."""
    values = np.asarray([[0.4, 0.25, 0.1, 0.5], [0.6, 0.5, 0.45, 0.5]])
    logits = np.log(1 / values - 1) - np.log(2)
    trace = make_trace(np.repeat(logits[..., None], 2, axis=-1))
    for threshold, layers in [(0.2, [3, 4]), (0.3, [2, 4]), (0.47, [1, 3]), (0.7, [1, 1])]:
        assert leaves_at(trace, f"energy < {threshold}") == layers


@pytest.mark.parametrize(
    ("pattern", "layer"), [("1011", 1), ("0000", 4), ("1111", 1), ("0100", 2), ("0110", 2)]
)
def test_golden_oracle(pattern, layer):
    trace = constant_predictions([1 - int(right) for right in pattern])
    assert leaves_at(trace, "oracle") == [layer]
    assert replay(trace, Policy.parse("oracle")).labels[0] == (0 if "1" in pattern else 1)


def test_the_oracle_needs_labels():
    with pytest.raises(UsageError, match="no labels"):
        replay(make_trace(np.zeros((1, 2, 2))), Policy.parse("oracle"))


@settings(max_examples=60, deadline=None)
@given(small_traces(), st.sampled_from(FALLING), st.floats(-3, 1.1), st.integers(1, 3))
def test_thresholds_match_plain_python(trace, signal, threshold, count):
    answer = replay(trace, Family.of(signal, count).policy(threshold))
    table = slow.signal_rows(trace, Signal.parse(signal))
    expected = [slow.threshold_exit(row, False, threshold, count) for row in table]
    assert answer.exit_index.tolist() == expected
    assert answer.exit_layers.tolist() == [trace.exit_layers[number] for number in expected]
    rows = np.arange(trace.rows)
    assert answer.labels.tolist() == trace.logits[rows, expected].argmax(-1).tolist()
    best = [max(slow.softmax(row)) for row in trace.logits[rows, expected].tolist()]
    np.testing.assert_allclose(answer.scores, best, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(small_traces(), st.integers(1, 5))
def test_patience_and_oracle_match_plain_python(trace, count):
    answers = trace.logits.argmax(-1).tolist()
    expected = [slow.patience_exit(row, count) for row in answers]
    assert replay(trace, Policy.parse(f"patience({count})")).exit_index.tolist() == expected
    expected = [slow.oracle_exit(*both) for both in zip(answers, trace.labels, strict=True)]
    assert replay(trace, Policy.parse("oracle")).exit_index.tolist() == expected


def test_full_and_fixed_layers():
    trace = make_trace(np.zeros((2, 3, 2)), exit_layers=(2, 5, 12))
    assert leaves_at(trace, "full") == [12, 12]
    assert leaves_at(trace, "layer(5)") == [5, 5]
    assert leaves_at(trace, "layer(12)") == [12, 12]
    with pytest.raises(UsageError, match="2, 5, 12"):
        leaves_at(trace, "layer(3)")


@settings(max_examples=60, deadline=None)
@given(small_traces(), st.sampled_from(FALLING), st.floats(-3, 1.1), st.floats(0, 1))
def test_a_higher_threshold_never_leaves_later(trace, signal, threshold, more):
    low = replay(trace, Family.of(signal).policy(threshold)).exit_layers
    high = replay(trace, Family.of(signal).policy(threshold + more)).exit_layers
    assert (high <= low).all()


@settings(max_examples=60, deadline=None)
@given(small_traces(), st.floats(0, 1.1))
def test_lambda_zero_is_entropy(trace, threshold):
    plain = leaves_at(trace, f"entropy < {threshold!r}")
    assert leaves_at(trace, f"edr(lambda=0) < {threshold!r}") == plain


@pytest.mark.parametrize("line", ["edr < 0.3", "max_probability > 0.7", "patience(1)", "layer(2)"])
def test_the_oracle_is_at_least_as_right_and_as_early_where_a_rule_is_right(line):
    trace = random_trace(rows=300)
    rule, best = (replay(trace, Policy.parse(text)) for text in (line, "oracle"))
    right = rule.labels == trace.labels
    assert 0 < right.mean() <= (best.labels == trace.labels).mean()
    assert (best.exit_layers <= rule.exit_layers)[right].all()


@pytest.mark.parametrize("line", ["edr < 0.3", "entropy < 0.4 x 2", "energy < 0.1", "patience(2)"])
def test_naming_the_classes_otherwise_changes_nothing(line):
    trace, order = random_trace(rows=300), [2, 0, 1]
    renamed = make_trace(
        trace.logits[..., order],
        np.argsort(order)[trace.labels],
        trace.distances[..., order],
    )
    clear = margin(trace, Policy.parse(line)) > 1e-9
    assert clear.mean() > 0.9
    before, after = (replay(each, Policy.parse(line)) for each in (trace, renamed))
    assert np.array_equal(before.exit_layers[clear], after.exit_layers[clear])
    assert np.array_equal(before.labels[clear], np.asarray(order)[after.labels[clear]])


def test_the_histogram_counts_every_row():
    trace = random_trace(rows=300)
    answer = replay(trace, Policy.parse("edr < 0.3"))
    histogram = exit_histogram(answer.exit_layers, trace.exit_layers)
    assert sum(histogram.values()) == 300
    assert sum(count > 0 for count in histogram.values()) > 2


def test_margin_is_the_smallest_gap_up_to_the_exit():
    trace = golden_trace()
    # Leaves at layer 2 (0.213444): the nearer value of layer 3 (0.095563) must not count.
    found = margin(trace, Policy.parse("edr(lambda=1.0) < 0.5"))
    assert found[0] == pytest.approx(0.5 - 0.213444, abs=1e-6)
    assert margin(trace, Policy.parse("edr < 0.09"))[0] == pytest.approx(0.005563, abs=1e-6)
    assert margin(trace, Policy.parse("patience(1)")).tolist() == [np.inf]
