"""Sentences and windows of words: signals, policies, replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exits.word_traces import word_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits.policy import Policy
from de3bert.exits.replay import replay
from de3bert.exits.rules import RuleState
from de3bert.exits.signals.formulas import entropy
from de3bert.exits.trace import Trace
from de3bert.exits.units import sentence_signal, widest_around
from de3bert.tasks import TASKS

U = np.array([0.1, 0.5, 0.05, 0.08, 0.02, 0.3])
ONE = np.zeros(6, dtype=np.int64)

word_lists = st.lists(
    st.lists(st.floats(0, 1, allow_nan=False), min_size=1, max_size=6), min_size=1, max_size=4
)


def flat(rows):
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return np.array([value for row in rows for value in row]), numbers


def test_golden_numbers():
    assert widest_around(U, ONE, 3).tolist() == [0.5, 0.5, 0.5, 0.08, 0.3, 0.3]
    assert sentence_signal(U, ONE) == pytest.approx([0.5])
    assert sentence_signal(U, ONE, "mean") == pytest.approx([0.175])


@given(rows=word_lists, half=st.integers(0, 4))
def test_a_window_is_the_largest_around_a_word_inside_its_sentence(rows, half):
    signal, sentence = flat(rows)
    slow = [
        max(row[max(0, place - half) : place + half + 1])
        for row in rows
        for place in range(len(row))
    ]
    assert widest_around(signal, sentence, 2 * half + 1).tolist() == slow


@given(rows=word_lists)
def test_a_sentence_is_as_sure_as_its_least_sure_word_or_its_mean_one(rows):
    signal, sentence = flat(rows)
    assert sentence_signal(signal, sentence).tolist() == [max(row) for row in rows]
    means = [sum(row) / len(row) for row in rows]
    assert sentence_signal(signal, sentence, "mean") == pytest.approx(means)
    table = np.stack([signal, 1 - signal], axis=1)  # several exits at once
    assert sentence_signal(table, sentence)[:, 1].tolist() == [max(1 - np.array(r)) for r in rows]


@pytest.mark.parametrize("window", [0, 2, 4, -3])
def test_even_windows_are_refused(window):
    with pytest.raises(UsageError, match=rf"odd number of words.*got {window}"):
        widest_around(U, ONE, window)


@pytest.mark.parametrize(
    "line",
    ["entropy < 0.1", "entropy < 0.1 mean", "entropy < 0.1 window 5", "edr(lambda=2.0) < 0.3",
     "max_probability > 0.9 window 3", "entropy < 0.2 x 2", "layer(2)", "full"],
)  # fmt: skip
def test_policies_print_as_they_are_read(line):
    policy = Policy.parse(line)
    assert str(policy) == line
    assert Policy.parse(str(policy)) == policy
    assert (policy.window is not None) == ("window" in line)
    TASKS["token-classification"].check_policy(policy)


def test_max_is_the_default():
    assert Policy.parse("entropy < 0.1 max") == Policy.parse("entropy < 0.1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("entropy < 0.1 window 4", "odd number of words.*got 4"),
        ("entropy < 0.1 window five", 'odd number of words, got "five"'),
        ("entropy < 0.1 x 2 window 5", "A window goes with a plain threshold"),
        ("patience(3)", "`patience.3.` does not apply to taggers"),
        ("oracle", "does not apply to taggers"),
        ("", "one line of text"),
        ("entropi < 0.1 window 3", 'Did you mean "entropy"'),
    ],
)
def test_what_cannot_be_read_is_refused(line, message):
    with pytest.raises(UsageError, match=message):
        TASKS["token-classification"].policy(line)


def slow_sentee(words: Trace, tau: float, over: str) -> list[int]:
    """Exit layers word by word, by the definition."""
    trace, layers = words, []
    for number in range(words.sentences):
        mine = np.flatnonzero(words.sentence == number)
        left = trace.exit_layers[-1]
        for at, layer in enumerate(trace.exit_layers[:-1]):
            sure = [float(entropy(trace.logits[word, at].astype(np.float64))) for word in mine]
            if (max(sure) if over == "max" else sum(sure) / len(sure)) < tau:
                left = layer
                break
        layers += [left] * len(mine)
    return layers


@pytest.mark.parametrize("over", ["max", "mean"])
@pytest.mark.parametrize("tau", [0.0, 0.2, 0.5, 0.8, 1.1])
def test_sentee_replay_follows_the_definition(over, tau):
    words = word_trace(3)
    answer = replay(words, Policy(Policy.parse(f"entropy < {tau}").rule, over))
    assert answer.exit_layers.tolist() == slow_sentee(words, tau, over)
    rows = np.arange(words.rows)
    assert (answer.labels == words.logits[rows, answer.exit_index].argmax(-1)).all()
    assert answer.exact


def test_tokee_replay_follows_the_definition_and_says_that_it_is_not_a_run():
    words, tau = word_trace(4), 0.6
    answer = replay(words, Policy.parse(f"entropy < {tau} window 3"))
    trace = words
    for word in range(trace.rows):
        near = [
            other
            for other in range(max(0, word - 1), min(trace.rows, word + 2))
            if words.sentence[other] == words.sentence[word]
        ]
        left = trace.depth
        for at, layer in enumerate(trace.exit_layers[:-1]):
            if max(float(entropy(trace.logits[other, at])) for other in near) < tau:
                left = layer
                break
        assert answer.exit_layers[word] == left
    assert not answer.exact
    assert len(set(answer.exit_layers.tolist())) > 1  # else this would show nothing


def test_a_window_over_the_whole_sentence_is_sentee():
    words = word_trace(5)
    for tau in (0.3, 0.6, 0.9):
        whole = replay(words, Policy.parse(f"entropy < {tau} window 99"))
        assert (
            whole.exit_layers == replay(words, Policy.parse(f"entropy < {tau}")).exit_layers
        ).all()


def test_a_signal_that_is_safer_when_high_waits_for_its_lowest_word():
    words = word_trace(6)
    answer = replay(words, Policy.parse("max_probability > 0.7"))
    at = answer.exit_index < words.exits - 1
    logits = words.logits[np.arange(words.rows), answer.exit_index].astype(float)
    best = np.exp(logits - logits.max(-1, keepdims=True))
    assert (best.max(-1) / best.sum(-1))[at].min() > 0.7
    assert at.any()
    halted = replay(words, Policy.parse("max_probability > 0.7 window 3"))
    assert (halted.exit_index <= answer.exit_index).all()


def test_several_exits_in_a_row_count_for_the_sentence():
    words = word_trace(7)
    once = replay(words, Policy.parse("entropy < 0.7"))
    twice = replay(words, Policy.parse("entropy < 0.7 x 2"))
    assert (twice.exit_index >= np.minimum(once.exit_index + 1, words.exits - 1)).all()


def test_fixed_layers_and_full_depth():
    words = word_trace(8)
    assert set(replay(words, Policy.parse("layer(4)")).exit_layers) == {4}
    assert set(replay(words, Policy.parse("full")).exit_layers) == {8}
    with pytest.raises(UsageError, match="no exit at layer 3"):
        replay(words, Policy.parse("layer(3)"))


def test_a_nan_is_an_error_and_not_a_word_that_stays():
    policy, words = Policy.parse("entropy < 0.5"), word_trace(9)
    logits = words.logits[:, 0].copy()
    logits[1, 0] = np.nan
    from de3bert.exits import ExitView

    with pytest.raises(De3Error, match="not a number"):
        policy.step(RuleState.fresh(words.sentences), ExitView(2, logits), words.sentence)


@pytest.mark.parametrize("numbers", [[0, 0, 2], [1, 1, 1], [0, 1, 0], [0, 0]])
def test_sentences_are_numbered_without_gaps(numbers):
    words = word_trace(1)
    with pytest.raises(De3Error, match="number of its sentence"):
        replace(words.take(slice(0, 3)), sentence=np.array(numbers))
