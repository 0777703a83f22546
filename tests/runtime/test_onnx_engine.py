"""The engine on a bundle, by every back end that runs one: rows really leave, and batching never
changes an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.export.bundles import (
    BUNDLE_BACKENDS,
    ROUNDING,
    apart,
    pointed_model,
    trained_bundle,
)
from tests.fixtures_trained import toy_rows
from tests.runtime.fakes import of_any_kind
from tests.runtime.test_stopping import PAIRS, POLICIES, PROPERTY, TEXTS, answers, spreading

import de3bert
from de3bert import Classifier
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace, replay
from de3bert.exits.replay import margin
from de3bert.runtime.classifier import AHEAD

__all__ = ["pointed_model", "trained_bundle"]

SOME = [text for text, _ in toy_rows(40, seed=41)]


@pytest.fixture(scope="module", params=BUNDLE_BACKENDS)
def bundle(request: pytest.FixtureRequest, trained_bundle: Path) -> Classifier:
    return de3bert.load(trained_bundle, backend=request.param)


@pytest.fixture(scope="module")
def classifier(pointed_model: Path) -> Classifier:
    """The model that the bundle was made of, run by torch."""
    return de3bert.load(pointed_model)


def clear_cut(trace: Trace, policy: Policy) -> np.ndarray:
    """Rows that no rounding decides otherwise: neither signal nor class is a near tie."""
    ordered = np.sort(trace.logits, axis=-1)
    gap = (ordered[..., -1] - ordered[..., -2]).min(axis=1)
    return (margin(trace, policy) > ROUNDING) & (gap > ROUNDING)


@dataclass
class Work:
    """(exit layer, rows, tokens) of each graph that ran, (exit layer, rows) of each distance."""

    graphs: list[tuple[int, int, int]] = field(default_factory=list)
    distances: list[tuple[int, int]] = field(default_factory=list)


class WatchedGraph:
    """A graph of distances that says when it runs."""

    def __init__(self, graph: Any, layer: int, work: Work) -> None:
        self.graph, self.layer, self.work = graph, layer, work

    def run(self, feeds: dict[str, Any]) -> Any:
        self.work.distances.append((self.layer, len(feeds["pooled"])))
        return self.graph.run(feeds)


def watch(bundle: Classifier, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Puts recorders before the graphs; every feed must have the rows and tokens of the states.

    Single rows take the same way then: the graph that has one for themselves is put aside.
    """
    monkeypatch.setattr(bundle.backend, "_single", None)
    work = Work()
    axes: dict[str, list[str | int]] = bundle.backend.axes

    def watched(layer: int, stretch: Any) -> Any:
        run = stretch.run

        def recorded(feeds: dict[str, Any]) -> Any:
            rows, tokens = feeds["input_ids" if "input_ids" in feeds else "hidden"].shape[:2]
            for name in set(feeds) & set(axes):
                sizes = {"rows": rows, "tokens": tokens}
                assert feeds[name].shape == tuple(sizes.get(axis, axis) for axis in axes[name])
            work.graphs.append((layer, rows, tokens))
            return run(feeds)

        return recorded

    for layer, stretch in bundle.backend.stretches.items():
        monkeypatch.setattr(stretch, "run", watched(layer, stretch))
        if stretch.distances is not None:
            graph = WatchedGraph(stretch.distances, layer, work)
            monkeypatch.setattr(stretch, "distances", graph)
    return work


def test_a_bundle_has_the_signals_of_its_model(bundle, classifier):
    theirs = classifier.trace(SOME)
    for size in (1, 6, 40):
        assert apart(bundle.trace(SOME, batch_size=size), theirs) <= ROUNDING


def test_batching_never_changes_an_answer(bundle, classifier):
    seen: Counter[str] = Counter()
    layers: Counter[int] = Counter()

    @PROPERTY
    @given(texts=TEXTS, size=st.integers(1, 9), line=st.sampled_from(POLICIES), order=st.randoms())
    def check(texts, size, line, order):
        policy = Policy.parse(line)
        trace = classifier.trace(texts)  # torch says what is right
        expected, kept = replay(trace, policy), clear_cut(trace, policy)
        alone = [bundle.predict([text], policy=policy)[0] for text in texts]
        together = bundle.predict(texts, policy=policy, batch_size=size)
        shuffled = list(range(len(texts)))
        order.shuffle(shuffled)
        reordered = bundle.predict([texts[row] for row in shuffled], policy=policy, batch_size=size)
        for row in np.flatnonzero(kept):
            name = bundle.label_names[expected.labels[row]]
            answer = (name, int(expected.exit_layers[row]))
            found = [alone[row], together[row], reordered[shuffled.index(row)]]
            assert answers(found) == [answer] * 3
            assert together[row].score == pytest.approx(expected.scores[row], abs=1e-5)
            layers[answer[1]] += policy.signal is not None
        seen.update({"compared": int(kept.sum()), "set aside": int((~kept).sum())})

    check()
    print(f"rows compared and set aside: {dict(seen)}, exit layers: {dict(layers)}")
    assert seen["compared"] > 20 * seen["set aside"]
    assert sum(rows > 0 for rows in layers.values()) >= 3  # exits really spread over layers


def test_pairs_are_batched_like_single_texts(bundle, classifier):
    policy = Policy.parse("edr(lambda=1.0) < 0.2")
    bundle, classifier = of_any_kind(bundle), of_any_kind(classifier)

    @settings(PROPERTY, max_examples=15)
    @given(pairs=PAIRS, size=st.integers(1, 6))
    def check(pairs, size):
        trace = classifier.trace(pairs)
        together = answers(bundle.predict(pairs, policy=policy, batch_size=size))
        expected = replay(trace, policy)
        for row in np.flatnonzero(clear_cut(trace, policy)):
            name = bundle.label_names[expected.labels[row]]
            assert together[row] == (name, expected.exit_layers[row])

    check()


@pytest.mark.parametrize("point", ["fast", "sure", "twice", "agreed", "second", "whole", None])
def test_every_stored_point_gives_the_answers_of_the_model(bundle, classifier, point):
    trace = classifier.trace(SOME)
    kept = clear_cut(trace, classifier.policy(point))
    assert kept.sum() > 35
    theirs = answers(classifier.predict(SOME, point))
    ours = answers(bundle.predict(SOME, point, batch_size=6))
    assert [ours[row] for row in np.flatnonzero(kept)] == [
        theirs[row] for row in np.flatnonzero(kept)
    ]


@pytest.mark.parametrize("size", [1, 3, 32])
def test_rows_that_left_are_not_computed_further(bundle, monkeypatch, size):
    policy = spreading(bundle, SOME)
    work = watch(bundle, monkeypatch)
    predictions = bundle.predict(SOME, policy=policy, batch_size=size)
    left = Counter(each.exit_layer for each in predictions)
    assert len(left) >= 3
    per_layer: Counter[int] = Counter()
    for layer, rows, _ in work.graphs:
        per_layer[layer] += rows
    assert per_layer == {
        layer: sum(count for at, count in left.items() if at >= layer)
        for layer in range(1, max(left) + 1)
    }


def test_padding_goes_when_the_longest_row_leaves(bundle, monkeypatch):
    policy = spreading(bundle, SOME)
    trace = bundle.trace(SOME)
    left, length = replay(trace, policy).exit_layers, trace.tokens
    clear = np.flatnonzero(clear_cut(trace, policy)).tolist()
    long, short = next(
        (i, j) for i in clear for j in clear if left[i] < left[j] and length[i] > length[j]
    )
    work = watch(bundle, monkeypatch)
    found = bundle.predict([SOME[long], SOME[short]], policy=policy)
    assert [each.exit_layer for each in found] == [left[long], left[short]]
    assert work.graphs == [
        *((layer, 2, length[long]) for layer in range(1, left[long] + 1)),
        *((layer, 1, length[short]) for layer in range(left[long] + 1, left[short] + 1)),
    ]


@pytest.mark.parametrize(
    ("line", "graphs", "distances"),
    [
        ("full", [1, 2, 3, 4], []),
        ("layer(2)", [1, 2], []),
        ("entropy < 0", [1, 2, 3, 4], []),
        ("max_probability > 0", [1], []),
        ("patience(3)", [1, 2, 3, 4], []),
        ("edr(lambda=1.0) < 0", [1, 2, 3, 4], [1, 2, 3]),
        ("distance_ratio < 0", [1, 2, 3, 4], [1, 2, 3]),
        ("edr(lambda=1.0) < 1.0", [1], []),
    ],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_only_what_the_policy_reads_is_run(bundle, monkeypatch, line, graphs, distances, rows):
    work = watch(bundle, monkeypatch)
    bundle.predict(["a good film", "a dull plot"][:rows], policy=line)
    assert [layer for layer, _, _ in work.graphs] == graphs
    assert work.distances == [(layer, rows) for layer in distances]


def test_distances_are_run_only_where_entropy_does_not_decide_alone(bundle, monkeypatch):
    trace = bundle.trace(SOME)
    signal = Policy.parse("edr(lambda=1.0) < 1").signal
    view = trace.view(0)
    bounds = np.array(list(signal.worst_of_rows(view)))
    surest, doubtful = int(bounds.argmin()), int(signal(view).argmax())
    policy = Policy.parse(f"edr(lambda=1.0) < {float(bounds[surest]) + 0.01!r}")
    work = watch(bundle, monkeypatch)
    assert bundle.predict([SOME[surest]], policy=policy)[0].exit_layer == 1
    assert work.distances == []
    first, second = bundle.predict([SOME[surest], SOME[doubtful]], policy=policy)
    assert first.exit_layer == 1 < second.exit_layer
    # Together at the first exit; what is still in doubt goes on alone.
    assert work.distances[:2] == [(1, 2), (2, 1)]


def test_answers_come_in_input_order(bundle):
    texts = sorted(SOME, key=len, reverse=True)  # batches are made of the shortest first
    alone = [bundle.predict([text], "fast")[0] for text in texts]
    assert len({round(each.score, 3) for each in alone}) > 10
    for size in (2, 7, 64):
        together = bundle.predict(texts, "fast", batch_size=size)
        for one, other in zip(alone, together, strict=True):
            assert other.score == pytest.approx(one.score, abs=1e-5)


@pytest.mark.parametrize("size", [1, 3, 32])
def test_a_stream_gives_what_a_list_gives(bundle, size):
    texts = [*SOME, "good " * 40]
    streamed = list(bundle.predict_iter(iter(texts), "fast", batch_size=size))
    assert [each.truncated for each in streamed] == [False] * len(SOME) + [True]
    expected = bundle.predict(texts, "fast", batch_size=size)
    assert answers(streamed) == answers(expected)
    assert [each.score for each in streamed] == pytest.approx(
        [each.score for each in expected], abs=1e-5
    )
    assert list(bundle.predict_iter([])) == []


def test_a_stream_is_read_window_by_window(bundle):
    read = 0

    def source() -> Iterator[str]:
        nonlocal read
        while True:  # it never ends
            read += 1
            yield SOME[read % len(SOME)]

    stream = bundle.predict_iter(source(), "fast", batch_size=2)
    assert read == 0
    window = 2 * AHEAD
    for number in range(1, 2 * window + 2):
        next(stream)
        assert read == -(-number // window) * window


def test_a_stream_is_checked_before_it_is_read(bundle):
    with pytest.raises(UsageError, match="at least 1"):
        bundle.predict_iter(iter(["good"]), batch_size=0)
    with pytest.raises(UsageError, match="operating point"):
        bundle.predict_iter(iter(["good"]), "fsat")


def test_an_explanation_agrees_with_the_prediction_and_the_model(bundle, classifier):
    for text in SOME[:6]:
        ours, theirs = (each.explain(text, "fast") for each in (bundle, classifier))
        (answer,) = bundle.predict([text], "fast")
        assert ours.prediction.exit_layer == answer.exit_layer
        assert [row.label for row in ours.layers] == [row.label for row in theirs.layers]
        for one, other in zip(ours.layers[:-1], theirs.layers[:-1], strict=True):
            assert one.entropy == pytest.approx(other.entropy, abs=ROUNDING)
            assert one.distance == pytest.approx(other.distance, abs=1e-6)
            assert one.edr == pytest.approx(other.edr, abs=ROUNDING)
        assert ours.layers[-1].distance is None
