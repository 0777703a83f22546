"""A text is a sentence of one unit: both ways through replay, curves and calibration agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from tests.exits.traces import random_trace, small_traces
from tests.exits.word_traces import word_trace

from de3bert.errors import UsageError
from de3bert.exits import ExitView, Policy, Trace, calibrate, curve, replay
from de3bert.exits.exit_state import ExitState
from de3bert.exits.replay import margin
from de3bert.exits.trace_file import KINDS

POLICIES = ["entropy < 0.6", "entropy < 0.6 x 2", "edr(lambda=1.0) < 0.4", "max_probability > 0.6",
            "full", "oracle"]  # fmt: skip
FAMILIES = ["entropy", "edr(lambda=2.0)", "max_probability", "entropy x 2", "layers", "oracle"]


def as_sentences(trace: Trace) -> Trace:
    """The same rows, each a sentence of one word of one piece."""
    ones = np.ones(trace.rows, dtype=np.int32)
    return replace(trace, tokens=ones, sentence=np.arange(trace.rows))


def same_answers(one, other):
    assert one.exit_layers.tolist() == other.exit_layers.tolist()
    assert one.labels.tolist() == other.labels.tolist()
    assert one.scores.tolist() == other.scores.tolist()


@given(trace=small_traces())
def test_every_policy_leaves_at_the_same_exits(trace):
    for line in POLICIES:
        policy = Policy.parse(line)
        same_answers(replay(trace, policy), replay(as_sentences(trace), policy))
        assert margin(trace, policy).tolist() == margin(as_sentences(trace), policy).tolist()
    for ending in ("mean", "max", "window 1", "window 5"):  # of one word all mean the same
        policy = Policy.parse(f"entropy < 0.6 {ending}")
        same_answers(
            replay(trace, Policy.parse("entropy < 0.6")), replay(as_sentences(trace), policy)
        )


@given(trace=small_traces())
def test_every_family_has_the_same_curve(trace):
    for family in FAMILIES:
        one, other = curve(trace, family), curve(as_sentences(trace), family)
        assert one.thresholds.tolist() == other.thresholds.tolist()
        assert one.layers_mean.tolist() == other.layers_mean.tolist()
        assert one.score == pytest.approx(other.score)


@pytest.mark.parametrize("target", ["layers=1.7", "drop=0.02", "accuracy=0.7", "agree=0.9", "full"])
@pytest.mark.parametrize("family", [None, "entropy"])
def test_every_target_is_met_by_the_same_policy(target, family):
    trace = random_trace(rows=150, seed=4)
    one = calibrate(trace, target, name="p", family=family)
    other = calibrate(as_sentences(trace), target, name="p", family=family)
    assert str(one.policy) == str(other.policy)
    alike = ("rows", "metric", "score", "full_score", "agreement", "layers_mean", "layer_speedup",
             "exit_histogram")  # fmt: skip
    assert {key: one.measured[key] for key in alike} == {key: other.measured[key] for key in alike}
    assert other.measured["sentences"] == 150


def test_without_labels_words_are_scored_by_agreement():
    trace = replace(word_trace(16, sentences=40), labels=None)
    point = calibrate(trace, "agree=0.9", name="p", family="entropy")
    said = replay(trace, point.policy).labels
    agreed = float((said == trace.predictions[:, -1]).mean())
    assert point.measured["metric"] == "agreement"
    assert point.measured["score"] == pytest.approx(agreed)
    assert agreed >= 0.9


def test_the_oracle_waits_for_the_whole_sentence():
    trace = word_trace(17, sentences=30)
    layers = replay(trace, Policy.parse("oracle")).exit_layers
    for number in range(trace.sentences):
        mine = np.flatnonzero(trace.sentence == number)
        right = [at for at in range(trace.exits) if trace.correct[mine, at].all()]
        expected = trace.exit_layers[right[0]] if right else trace.depth
        assert set(layers[mine].tolist()) == {expected}


def test_words_of_a_file(tmp_path):
    trace = word_trace(18)
    trace.save(tmp_path / "w.trace")
    again = Trace.load(tmp_path / "w.trace")
    for name in KINDS:
        one, other = getattr(trace, name), getattr(again, name)
        assert (one is None) == (other is None)
        assert one is None or (one == other).all()
    part = again.take(np.flatnonzero(again.sentence > 3))
    assert part.sentence[0] == 0
    assert part.sentences == trace.sentences - 4


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("agree=0.9 confidence=0.95", "not independent rows"),
        ("layers=2.0 keep", "not independent rows"),
        ("speedup=2.0", "about time"),
    ],
)
def test_what_cannot_be_asked_of_words(target, message):
    with pytest.raises(UsageError, match=message):
        calibrate(word_trace(19, sentences=40), target, name="p")


@pytest.mark.parametrize("line", ["patience(2)", "bandit"])
def test_rules_of_texts_are_refused_for_words(line):
    with pytest.raises(UsageError, match="does not apply to taggers"):
        replay(word_trace(20), Policy.parse(line))


def test_a_fold_drops_a_sentence_when_its_last_word_is_done():
    exit_state = ExitState(
        Policy.parse("entropy < 0.5 window 1"), 2, (1, 2, 3), np.array([0, 0, 1])
    )
    sure, unsure = [9.0, 0.0], [0.0, 0.0]
    now = exit_state.step(ExitView(1, np.array([sure, unsure, unsure])))
    assert now.tolist() == [True, False, False]
    assert exit_state.drop(now).tolist() == [True, True]
    assert exit_state.done.tolist() == [True, False, False]
    now = exit_state.step(ExitView(2, np.array([sure, sure, unsure])))
    assert now.tolist() == [False, True, False]  # who is done is not done again
    assert exit_state.drop(now).tolist() == [False, True]
    assert (exit_state.units.tolist(), exit_state.sentence.tolist(), exit_state.done.tolist()) == (
        [2],
        [0],
        [False],
    )
