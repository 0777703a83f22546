"""Why the words of a sentence left where they did, by the engine's own account."""

from __future__ import annotations

import json

import numpy as np
import pytest

import de3bert
from de3bert.errors import UsageError
from de3bert.exits.policy import Policy
from de3bert.exits.signals.parse import Signal

WORDS = ["the", "film-movie", "was", "good", "plot", "and", "it", "is", "great", "story"]
EXITS = 4


@pytest.fixture(scope="module")
def tagger(tokee_model):
    return de3bert.load(tokee_model)


def entropies(tagger) -> np.ndarray:
    """Of every word at every exit before the last, with no word halted. (words, exits - 1)"""
    trace = tagger.trace([WORDS])
    entropy = Signal.parse("entropy")
    return np.stack([entropy(trace.view(number)) for number in range(EXITS - 1)], 1)


def test_a_sentence_leaves_by_its_largest_or_mean_signal(tagger):
    values = entropies(tagger)
    for over, joint in (("", values.max(0)), (" mean", values.mean(0))):
        tau = float(np.sort(joint)[:2].mean())  # one exit passes
        found = tagger.explain(WORDS, policy=f"entropy < {tau}{over}")
        assert found.prediction == tagger.predict([WORDS], policy=f"entropy < {tau}{over}")[0]
        left = int(np.argmax(joint < tau)) + 1
        for number, word in enumerate(found.words):
            assert word.signal == pytest.approx(values[number].tolist(), abs=1e-5)
            assert word.decides == pytest.approx(joint.tolist(), abs=1e-5)
            assert [row.layer for row in word.layers] == [1, 2, 3, 4]  # also those after it left
            assert [row.layer for row in word.layers if row.leaves] == [left]
        assert (found.unit, found.signal) == ("sentence", "entropy")


def test_words_that_halt_are_explained_by_the_run_itself(tagger):
    """A halted word changes what its neighbours read, so a plain trace would tell another story."""
    tau = float(np.median(entropies(tagger)))
    policy = f"entropy < {tau} window 3"
    found = tagger.explain(WORDS, policy=policy)
    (answer,) = tagger.predict([WORDS], policy=policy)
    assert found.prediction == answer
    assert len(set(answer.exit_layers)) > 1
    for word, tag, score, left in zip(
        found.words, answer.tags, answer.scores, answer.exit_layers, strict=True
    ):
        own = word.layers[-1]  # nothing is told behind the layer where it halted
        assert (own.layer, own.leaves, own.label) == (left, True, tag)
        assert own.score == pytest.approx(score, abs=1e-5)
        passed = [value < tau for value in word.decides]
        assert passed == [False] * (left - 1) + [True] * (left < EXITS)
        assert len(word.signal) == len(word.decides)
    assert found.unit == "word"


def test_the_table_has_a_line_for_every_word(tagger):
    shown = str(tagger.explain(WORDS, policy="entropy < 0.5")).splitlines()
    assert shown[:2] == [" ".join(WORDS), "policy: entropy < 0.5"]
    assert shown[3].split() == ["layer", "1", "layer", "2", "layer", "3", "layer", "4"]
    assert [line.split()[0] for line in shown[4:]] == [*WORDS, "(sentence)"]
    assert all(line.count("*") == 1 for line in shown[4:-1])
    halted = str(tagger.explain(WORDS, policy="entropy < 1.01 window 3")).splitlines()
    assert halted[3].split() == ["layer", "1"]
    assert len(halted) == 4 + len(WORDS)
    fixed = tagger.explain(WORDS, policy="layer(2)")
    assert {word.decides for word in fixed.words} == {()}
    assert "(sentence)" not in str(fixed)
    assert json.loads(json.dumps(fixed.to_json()))["words"][1]["word"] == "film-movie"


def test_words_behind_the_limit_have_nothing_to_explain(tagger):
    found = tagger.explain(["film"] * 50, policy="full")
    assert found.prediction.truncated
    assert [len(word.layers) for word in found.words] == [EXITS] * 30 + [0] * 20
    assert len(str(found).splitlines()) == 4 + 50


def test_prototypes_are_part_of_it(de3_tagger):
    tagger = de3bert.load(de3_tagger)
    found = tagger.explain(WORDS, policy="edr(lambda=2.0) < 0.4")
    first = found.words[0]
    assert first.layers[0].distance is not None
    assert first.layers[-1].distance is None
    assert first.signal[0] == pytest.approx(first.layers[0].edr, abs=1e-5)
    # A signal that is safer when higher: the least sure word has the smallest.
    rising = tagger.explain(WORDS, policy="max_probability > 0.9")
    assert rising.words[0].decides[0] == min(word.signal[0] for word in rising.words)


def test_a_text_is_no_sentence(tagger):
    with pytest.raises(UsageError, match="split texts into words first"):
        tagger.explain("a film")


def test_a_policy_given_as_an_object(tagger):
    policy = Policy.parse("entropy < 0.5 window 3")
    assert tagger.explain(WORDS, policy=policy).policy == str(policy)
