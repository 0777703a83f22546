"""The promise of the engine: rows really leave, and batching never changes an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures_trained import NEGATIVE, NEUTRAL, POSITIVE, toy_rows
from tests.runtime.fakes import of_any_kind
from tests.runtime.spies import watch

from de3bert import Classifier, Prediction
from de3bert.exits import Policy, Trace, curve, replay
from de3bert.exits.replay import margin

POLICIES = (
    "edr(lambda=1.0) < 0.1",
    "edr(lambda=1.0) < 0.2",
    "edr(lambda=0.667) < 0.3",
    "edr(lambda=3.0) < 0.15",
    "entropy < 0.3",
    "entropy < 0.5",
    "entropy < 0.8",
    "max_probability > 0.9",
    "entropy < 0.5 x 2",
    "edr(lambda=1.0) < 0.3 x 2",
    "patience(1)",
    "patience(2)",
    "layer(2)",
    "full",
)
ROUNDING = 1e-4
WORDS = st.sampled_from((*POSITIVE, *NEGATIVE, *NEUTRAL, "zyxw", "naïve", "猫", "ÜBER", "🙂"))
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=14).map(" ".join), min_size=1, max_size=9)
PAIRS = st.lists(
    st.tuples(
        st.lists(WORDS, min_size=1, max_size=6).map(" ".join),
        st.lists(WORDS, min_size=1, max_size=6).map(" ".join),
    ),
    min_size=1,
    max_size=6,
)
PROPERTY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def clear_cut(trace: Trace, policy: Policy) -> np.ndarray:
    """Rows that no rounding decides otherwise: neither signal nor class is a near tie."""
    ordered = np.sort(trace.logits, axis=-1)
    gap = (ordered[..., -1] - ordered[..., -2]).min(axis=1)
    return (margin(trace, policy) > ROUNDING) & (gap > ROUNDING)


def spreading(classifier: Classifier, texts: Sequence[str]) -> Policy:
    """The EDR policy under which these texts leave at the most different layers."""
    trace = classifier.trace(texts, np.zeros(len(texts), dtype=np.int64))
    found = curve(trace, "edr(lambda=1.0)")
    policies = [found.policy(index) for index in range(len(found))]
    return max(policies, key=lambda each: len(set(replay(trace, each).exit_layers.tolist())))


def answers(predictions: Sequence[Prediction]) -> list[tuple[str, int]]:
    return [(each.label, each.exit_layer) for each in predictions]


def test_batching_never_changes_an_answer(classifier, monkeypatch):
    work = watch(classifier, monkeypatch)
    seen: Counter[str] = Counter()
    layers: Counter[int] = Counter()

    @PROPERTY
    @given(texts=TEXTS, size=st.integers(1, 9), line=st.sampled_from(POLICIES), order=st.randoms())
    def check(texts, size, line, order):
        policy = Policy.parse(line)
        trace = classifier.trace(texts)
        expected = replay(trace, policy)
        kept = clear_cut(trace, policy)
        alone = [classifier.predict([text], policy=policy)[0] for text in texts]
        work.clear()
        together = classifier.predict(texts, policy=policy, batch_size=size)
        assert work.row_layers == sum(each.exit_layer for each in together)
        shuffled = list(range(len(texts)))
        order.shuffle(shuffled)
        reordered = classifier.predict(
            [texts[row] for row in shuffled], policy=policy, batch_size=size
        )
        for row in np.flatnonzero(kept):
            name = classifier.label_names[expected.labels[row]]
            answer = (name, int(expected.exit_layers[row]))
            assert (
                answers([alone[row], together[row], reordered[shuffled.index(row)]]) == [answer] * 3
            )
            assert together[row].score == pytest.approx(expected.scores[row], abs=1e-5)
            layers[answer[1]] += policy.signal is not None
        seen.update({"compared": int(kept.sum()), "set aside": int((~kept).sum())})

    check()
    print(f"rows compared and set aside: {dict(seen)}, exit layers: {dict(layers)}")
    assert seen["compared"] > 20 * seen["set aside"]
    assert sum(rows > 0 for rows in layers.values()) >= 3  # exits really spread over layers


def test_pairs_are_batched_like_single_texts(classifier):
    classifier = of_any_kind(classifier)
    policy = Policy.parse("edr(lambda=1.0) < 0.2")

    @settings(PROPERTY, max_examples=15)
    @given(pairs=PAIRS, size=st.integers(1, 6))
    def check(pairs, size):
        trace = classifier.trace(pairs)
        together = answers(classifier.predict(pairs, policy=policy, batch_size=size))
        expected = replay(trace, policy)
        for row in np.flatnonzero(clear_cut(trace, policy)):
            name = classifier.label_names[expected.labels[row]]
            assert together[row] == (name, expected.exit_layers[row])

    check()
    joined, apart = classifier.encode([("good film", "bad film")]), classifier.encode(["good film"])
    assert set(joined.rows[0]["token_type_ids"]) == {0, 1}
    assert set(apart.rows[0]["token_type_ids"]) == {0}


@pytest.mark.parametrize("size", [1, 3, 32])
def test_rows_that_left_are_not_computed_further(classifier, monkeypatch, size):
    texts = [text for text, _ in toy_rows(40, seed=11)]
    policy = spreading(classifier, texts)
    work = watch(classifier, monkeypatch)
    predictions = classifier.predict(texts, policy=policy, batch_size=size)
    left = Counter(each.exit_layer for each in predictions)
    assert len(left) >= 3
    per_layer: Counter[int] = Counter()
    for layer, rows, _ in work.layers:
        per_layer[layer] += rows
    assert per_layer == {
        layer: sum(count for at, count in left.items() if at >= layer)
        for layer in range(1, max(left) + 1)
    }


def test_padding_goes_when_the_longest_row_leaves(classifier, monkeypatch):
    texts = [text for text, _ in toy_rows(60, seed=12)]
    policy = spreading(classifier, texts)
    trace = classifier.trace(texts)
    left, length = replay(trace, policy).exit_layers, trace.tokens
    clear = np.flatnonzero(clear_cut(trace, policy)).tolist()
    long, short = next(
        (i, j) for i in clear for j in clear if left[i] < left[j] and length[i] > length[j]
    )
    work = watch(classifier, monkeypatch)
    classifier.predict([texts[long], texts[short]], policy=policy)
    assert work.layers == [
        *((layer, 2, length[long]) for layer in range(1, left[long] + 1)),
        *((layer, 1, length[short]) for layer in range(left[long] + 1, left[short] + 1)),
    ]


@pytest.mark.parametrize(
    ("line", "heads", "distances"),
    [
        ("full", [4], []),
        ("layer(2)", [2], []),
        ("entropy < 0", [1, 2, 3, 4], []),
        ("patience(3)", [1, 2, 3, 4], []),
        ("edr(lambda=1.0) < 0", [1, 2, 3, 4], [1, 2, 3]),
    ],
)
def test_only_what_the_policy_reads_is_computed(classifier, monkeypatch, line, heads, distances):
    work = watch(classifier, monkeypatch)
    classifier.predict(["a good film"], policy=line)
    assert (work.heads, work.distances) == (heads, distances)


def test_the_ends_of_the_threshold(classifier):
    texts = [text for text, _ in toy_rows(30, seed=13)]
    never = classifier.predict(texts, policy="edr(lambda=1.0) < 0")
    assert {each.exit_layer for each in never} == {4}
    assert answers(never) == answers(classifier.predict(texts, policy="full"))
    always = classifier.predict(texts, policy="edr(lambda=1.0) < 1.0")
    assert {each.exit_layer for each in always} == {1}


def test_a_trace_is_what_the_model_says_at_full_depth(classifier: Classifier):
    """The engine's layers against the model's own forward, which runs without the engine."""
    import torch

    texts = [text for text, _ in toy_rows(9, seed=14)]
    trace = classifier.trace(texts, batch_size=4)
    inputs = classifier.backend.encoder.pad(classifier.encode(texts).rows)
    with torch.no_grad():
        output = classifier.backend.model(**inputs)
    np.testing.assert_allclose(trace.logits, output.exit_logits, atol=1e-5)
    np.testing.assert_allclose(trace.distances, output.distances, atol=1e-5)
