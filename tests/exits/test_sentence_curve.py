"""Entities, exact curves of the SENTEE rule, and points on them."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exits.word_traces import NAMES, word_trace

from de3bert.errors import UsageError
from de3bert.exits import Trace, calibrate, curve, replay
from de3bert.exits.layer_speedup import layers_mean
from de3bert.exits.policy import Policy
from de3bert.exits.sentence_metrics import WORD_METRICS, check_word_metric, tally
from de3bert.exits.spans import has_spans, spans

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]
PAIRS = st.tuples(st.sampled_from(TAGS), st.sampled_from([*TAGS, None]))


def slow_spans(tags):
    """Every stretch of words that could be an entity, tried one by one."""
    found = set()
    for start, stop in itertools.combinations(range(len(tags) + 1), 2):
        kind = tags[start][2:]
        if not kind or any(tag != f"I-{kind}" for tag in tags[start + 1 : stop]):
            continue
        opens = tags[start][0] == "B" or start == 0 or tags[start - 1][2:] != kind
        closes = stop == len(tags) or tags[stop] != f"I-{kind}"
        if opens and closes:
            found.add((start, stop, kind))
    return found


@given(st.lists(st.sampled_from(TAGS), max_size=8))
def test_entities_are_those_of_the_slow_search(tags):
    assert spans(tags) == slow_spans(tags)


@pytest.fixture(scope="module")
def seqeval():
    """Imported before any test is timed: it brings scikit-learn."""
    return pytest.importorskip("seqeval.metrics")


@given(sentences=st.lists(st.lists(PAIRS, min_size=1, max_size=8), min_size=1, max_size=5))
def test_scores_are_those_of_seqeval(seqeval, sentences):
    gold = [[tag for tag, _ in words] for words in sentences]
    said = [[tag for _, tag in words] for words in sentences]
    found = tally(gold, said, "span_f1")
    answers = [[tag or "O" for tag in words] for words in said]  # no answer is outside
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores that are not defined, which both take for 0
        precision = seqeval.precision_score(gold, answers)
        recall = seqeval.recall_score(gold, answers)
        f1 = seqeval.f1_score(gold, answers)
    assert (found.precision(), found.recall()) == pytest.approx((precision, recall))
    assert found.score() == pytest.approx(f1)


def test_entities_by_hand():
    assert spans(["B-A", "I-A", "O", "I-B", "B-B"]) == {(0, 2, "A"), (3, 4, "B"), (4, 5, "B")}
    assert spans(["I-A", "I-B", None, "I-B"]) == {(0, 1, "A"), (1, 2, "B"), (3, 4, "B")}
    gold = [["B-A", "I-A", "O"], ["B-B", "O", "O"]]
    said = [["B-A", "I-A", "B-B"], ["O", "O", "O"]]
    found = tally(gold, said, "span_f1")
    assert (found.precision(), found.recall(), found.score()) == (0.5, 0.5, 0.5)
    more = tally(gold, [["B-A", "I-A", "O"], ["O", "O", "O"]], "span_f1")
    assert (more.precision(), more.recall(), more.score()) == (1.0, 0.5, pytest.approx(2 / 3))
    assert tally([["O"]], [["O"]], "span_f1").score() == 0.0


def test_only_bio_tags_name_entities():
    assert has_spans(["O", "B-A", "I-A"])
    for tags in (["NOUN", "VERB"], ["O"], ["O", "B-"], ["O", "S-A", "B-A"], ["0", "1"]):
        assert not has_spans(tags)
        with pytest.raises(UsageError, match="span_f1 counts entities"):
            check_word_metric("span_f1", tags)
    with pytest.raises(UsageError, match='token-classification metric "f1"'):
        check_word_metric("f1", ["O", "B-A"])


def score_at(words: Trace, policy: Policy, metric: str, over: str = "max"):
    """Mean layers of a piece, and the score, by replay and without any running sum."""
    answer = replay(words, Policy(policy.rule, over))
    cut = np.flatnonzero(np.diff(words.sentence)) + 1
    gold = [[NAMES[k] for k in part] for part in np.split(words.labels, cut)]
    said = [[NAMES[k] for k in part] for part in np.split(answer.labels, cut)]
    return layers_mean(answer.exit_layers, words.weights), tally(gold, said, metric).score()


@pytest.mark.parametrize("metric", sorted(WORD_METRICS))
@pytest.mark.parametrize("family", ["entropy", "edr(lambda=1.0)", "max_probability", "entropy x 2"])
@pytest.mark.parametrize("ties", [False, True])
def test_every_point_of_the_curve_is_what_its_policy_gives(metric, family, ties):
    words = word_trace(11, ties=ties)
    points = curve(words, family, metric)
    assert len(points) > 3
    assert (np.diff(points.layers_mean) < 0).all()
    for number in range(len(points)):
        layers, score = score_at(words, points.policy(number), metric)
        assert points.layers_mean[number] == pytest.approx(layers)
        assert points.score[number] == pytest.approx(score)


def test_the_curve_misses_no_point():
    words = word_trace(12, sentences=6)
    points = curve(words, "entropy", "accuracy")
    seen = {
        round(score_at(words, Policy.parse(f"entropy < {tau}"), "accuracy")[0], 9)
        for tau in np.linspace(0, 1.01, 4000)
    }
    assert seen == {round(value, 9) for value in points.layers_mean.tolist()}


def test_the_curve_of_the_mean():
    words = word_trace(13)
    points = curve(words, "entropy mean", "accuracy")
    for number in range(len(points)):
        layers, score = score_at(words, points.policy(number), "accuracy", "mean")
        assert (points.layers_mean[number], points.score[number]) == pytest.approx((layers, score))


def test_a_word_costs_as_much_as_its_pieces():
    words = word_trace(14)
    answer = replay(words, Policy.parse("entropy < 0.5"))
    pieces = words.tokens.tolist()
    spent = sum(p * m for p, m in zip(pieces, answer.exit_layers.tolist(), strict=True))
    assert layers_mean(answer.exit_layers, words.weights) == pytest.approx(spent / sum(pieces))


def test_points_meet_their_target():
    words = word_trace(15, sentences=40)
    point = calibrate(words, "layers=2.0", name="2x", metric="span_f1")
    assert point.measured["layer_speedup"] >= 2.0
    layers, score = score_at(words, point.policy, "span_f1")
    assert point.measured["score"] == pytest.approx(score)
    assert point.measured["layers_mean"] == pytest.approx(layers)
    assert point.measured["sentences"] == 40
    low, high = point.measured["score_interval"]
    assert low < point.measured["score"] < high
    full = calibrate(words, "full", name="full", family="entropy")
    assert str(full.policy) == "full"
    assert full.measured["layer_speedup"] == 1.0
    kept = calibrate(words, "drop=0.0", name="safe", family="entropy")
    assert kept.measured["score"] >= kept.measured["full_score"] - 1e-9
    with pytest.raises(UsageError, match="about time"):
        calibrate(words, "latency=5ms", name="x")
    with pytest.raises(UsageError, match="does not apply to taggers"):
        calibrate(words, "layers=2.0", name="x", family="patience")


def test_an_interval_is_one_over_sentences():
    """Ten sentences of twenty words each, all right or all wrong, are ten facts and not 200."""
    right = np.repeat([True, False], [5, 5])
    logits = np.zeros((200, 1, 2), dtype=np.float32)
    logits[np.arange(200), 0, np.where(np.repeat(right, 20), 0, 1)] = 5.0
    trace = Trace(logits, None, np.zeros(200, dtype=int), np.ones(200, dtype=int), (1,), ("a", "b"))
    words = replace(trace, sentence=np.repeat(np.arange(10), 20))
    low, high = calibrate(words, "full", name="f").measured["score_interval"]
    assert low <= 0.3
    assert high >= 0.7
