"""A bandit in the engine: rows one by one, in order, learning on; and as replay says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import make_trace, random_trace
from tests.fixtures_trained import toy_rows
from tests.runtime.fakes import fake, texts_of

import de3bert
from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits import Policy, replay
from de3bert.runtime.engine import run_batch
from de3bert.runtime.evaluate import evaluate

LINES = ["bandit", "bandit(c=0.2, mu=0.0)", "bandit(arms=0.4/0.6/0.95, c=0.5, mu=0.5)"]
TRACE = replace(
    random_trace(rows=70, exits=5, seed=4),
    exit_layers=(1, 2, 4, 7, 12),
    tokens=np.random.default_rng(0).integers(3, 40, 70),
    certainty=None,
)


def layers_of(answers) -> list[int]:
    return [answer.exit_layer for answer in answers]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_running_is_replaying(line, size):
    classifier = fake(TRACE)
    expected = replay(TRACE, Policy.parse(line))
    answers = classifier.predict(texts_of(TRACE), policy=line, batch_size=size)
    assert layers_of(answers) == expected.exit_layers.tolist()
    assert len({*layers_of(answers)}) >= 3
    names = [TRACE.label_names[label] for label in expected.labels]
    assert [answer.label for answer in answers] == names
    np.testing.assert_allclose([answer.score for answer in answers], expected.scores, atol=1e-6)


def test_rows_run_one_by_one_in_input_order():
    classifier = fake(TRACE)
    classifier.predict(texts_of(TRACE)[::-1], policy="bandit", batch_size=16)
    assert classifier.backend.batches == [[row] for row in reversed(range(TRACE.rows))]


def test_no_exit_behind_the_one_taken_is_computed():
    classifier = fake(TRACE)
    answers = classifier.predict(texts_of(TRACE), policy="bandit")
    expected = [
        (row, layer)
        for row, answer in enumerate(answers)
        for layer in TRACE.exit_layers
        if layer <= answer.exit_layer
    ]
    assert classifier.backend.seen == expected


def test_a_classifier_goes_on_learning_until_it_forgets():
    whole = layers_of(fake(TRACE).predict(texts_of(TRACE), policy="bandit(c=0.2)"))
    texts, classifier = texts_of(TRACE), fake(TRACE)
    first = layers_of(classifier.predict(texts[:30], policy="bandit(c=0.2)"))
    classifier.predict(texts, policy="bandit(c=0.3)")  # another bandit, with a memory of its own
    classifier.predict(texts, policy="entropy < 0.3")
    second = layers_of(classifier.predict(texts[30:], policy=Policy.parse("bandit(c=0.2)")))
    assert first + second == whole
    classifier.forget()
    assert layers_of(classifier.predict(texts, policy="bandit(c=0.2)")) == whole
    # Without forgetting, the same rows are answered by what was learned from them.
    assert layers_of(classifier.predict(texts, policy="bandit(c=0.2)")) != whole


def test_a_stream_is_the_list():
    whole = fake(TRACE).predict(texts_of(TRACE), policy="bandit")
    stream = fake(TRACE).predict_iter(iter(texts_of(TRACE)), policy="bandit", batch_size=2)
    assert list(stream) == whole


def test_an_explanation_says_what_comes_next_and_teaches_nothing():
    classifier, watched = fake(TRACE), fake(TRACE)
    for text in texts_of(TRACE):
        explained = watched.explain(text, policy="bandit")
        assert explained.policy.startswith("bandit(")
        (answer,) = watched.predict([text], policy="bandit")
        assert explained.prediction.exit_layer == answer.exit_layer
        assert answer == classifier.predict([text], policy="bandit")[0]


def test_the_engine_refuses_to_batch_it():
    classifier = fake(TRACE)
    with pytest.raises(UsageError, match="learns from each row"):
        run_batch(classifier.backend, classifier.encode(["1", "2"]).rows, Policy.parse("bandit"))


def test_a_model_with_one_exit():
    trace = make_trace(np.zeros((3, 1, 2)), exit_layers=(6,))
    assert layers_of(fake(trace).predict(texts_of(trace), policy="bandit")) == [6, 6, 6]


def test_no_texts():
    assert fake(TRACE).predict([], policy="bandit") == []


def test_a_trained_model_runs_as_its_trace_replays(trained_model):
    """Traced one by one, so that the two see the same numbers to the last bit."""
    texts, labels = map(list, zip(*toy_rows(80, seed=51), strict=True))
    classifier = de3bert.load(trained_model)
    policy = Policy.parse("bandit(c=0.2, mu=0.02)")
    expected = replay(classifier.trace(texts, batch_size=1), policy).exit_layers.tolist()
    assert layers_of(classifier.predict(texts, policy=policy)) == expected
    assert len(set(expected)) >= 3
    classifier.forget()
    found = evaluate(classifier, read_table({"text": texts, "label": labels}), policy=policy)
    assert found.layers_mean == pytest.approx(np.mean(expected))
