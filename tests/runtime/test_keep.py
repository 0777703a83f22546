"""Controllers in the engine: as in replay, at any batch size, over calls, threads and restarts."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures_trained import toy_rows

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.exits import calibrate, replay

TEXTS = [text for text, _ in toy_rows(150, seed=21)]


@pytest.fixture(scope="module")
def kept(classifier):
    trace = classifier.trace(TEXTS)
    target = "layers=1.6 keep agree=0.3"
    return calibrate(trace, target, name="kept", family="entropy").policy


@pytest.fixture(scope="module")
def replayed(classifier, kept):
    return replay(classifier.trace(TEXTS), kept).exit_layers.tolist()


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8), batch=st.integers(1, 40))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_calls_and_batches_of_any_size_are_the_replay(classifier, kept, replayed, sizes, batch):
    classifier.forget()
    start, found = 0, []
    for size in [*sizes, len(TEXTS)]:
        part = TEXTS[start : start + size]
        found += classifier.predict(part, policy=kept, batch_size=batch) if part else []
        start += size
    assert [answer.exit_layer for answer in found] == replayed


def test_a_stream_is_the_replay(classifier, kept, replayed):
    classifier.forget()
    found = classifier.predict_iter(iter(TEXTS), policy=kept, batch_size=5)
    assert [answer.exit_layer for answer in found] == replayed


def test_another_process_goes_on(classifier, trained_model, kept, replayed):
    classifier.forget()
    first = classifier.predict(TEXTS[:70], policy=kept)
    state = json.loads(json.dumps(classifier.learned()))
    again = de3bert.load(trained_model)
    again.resume(state)
    rest = again.predict(TEXTS[70:], policy=kept)
    assert [answer.exit_layer for answer in [*first, *rest]] == replayed
    assert again.learned()[str(kept)]["seen"] == len(TEXTS)


def test_bandits_go_on_as_well(classifier, trained_model):
    classifier.forget()
    whole = classifier.predict(TEXTS, policy="bandit")
    classifier.forget()
    first = classifier.predict(TEXTS[:70], policy="bandit")
    again = de3bert.load(trained_model)
    again.resume(json.loads(json.dumps(classifier.learned())))
    rest = again.predict(TEXTS[70:], policy="bandit")
    assert [each.exit_layer for each in [*first, *rest]] == [each.exit_layer for each in whole]


def test_explaining_moves_nothing(classifier, kept):
    classifier.forget()
    classifier.predict(TEXTS[:20], policy=kept)
    before = classifier.learned()
    classifier.explain(TEXTS[0], policy=kept)
    assert classifier.learned() == before


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({"entropy < 0.2": {}}, De3Error),
        ({"no policy": {}}, UsageError),
        ({"bandit": {"gains": [], "plays": []}}, De3Error),
        ({"bandit": 3}, De3Error),
    ],
)
def test_what_cannot_be_gone_on_from(classifier, state, error):
    with pytest.raises(error):
        classifier.resume(state)
