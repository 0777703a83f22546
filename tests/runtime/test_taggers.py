"""Running taggers: what replay says, whatever the batch; halted words; saved folders."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.tagged import toy_sentences

import de3bert
from de3bert.data.words import read_words
from de3bert.errors import UsageError
from de3bert.exits import Policy, replay
from de3bert.exits.sweep import signal_matrix
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.engine import run_batch
from de3bert.runtime.evaluate import evaluate, trace_table

NEAR = 1e-4  # signals this near to the threshold may go either way
SENTENCES = [words for words, _ in toy_sentences(40, 21)] + [["film-movie", "good", "plot-a"]]


@pytest.fixture(scope="module")
def sentee(sentee_model):
    return de3bert.load(sentee_model)


@pytest.fixture(scope="module")
def tokee(tokee_model):
    return de3bert.load(tokee_model)


@pytest.fixture(scope="module")
def de3_words(de3_tagger):
    return de3bert.load(de3_tagger)


def said(tagger, policy, batch_size=32, sentences=SENTENCES):
    answers = tagger.predict(sentences, policy=policy, batch_size=batch_size)
    return [(a.tags, a.exit_layers) for a in answers]


def middle(tagger, signal="entropy"):
    """A threshold in the middle of what sentences have at the first exit, near to none of them."""
    from de3bert.exits.signals.parse import Signal

    values = np.sort(signal_matrix(tagger.trace(SENTENCES), Signal.parse(signal)).ravel())
    gaps = np.diff(values)
    centre = len(values) // 2
    widest = centre - 5 + int(gaps[centre - 5 : centre + 5].argmax())
    assert gaps[widest] > 2 * NEAR
    return float((values[widest] + values[widest + 1]) / 2)


@pytest.mark.parametrize("over", ["", " mean"])
def test_a_run_of_sentee_is_its_replay(sentee, over):
    policy = Policy.parse(f"entropy < {middle(sentee)}{over}")
    trace = sentee.trace(SENTENCES)
    expected = replay(trace, policy)
    answers = sentee.predict(SENTENCES, policy=policy)
    layers = [m for answer in answers for m in answer.exit_layers]
    assert layers == expected.exit_layers.tolist()
    assert len(set(layers)) > 1
    tags = [tag for answer in answers for tag in answer.tags]
    assert tags == [sentee.label_names[k] for k in expected.labels]
    scores = [score for answer in answers for score in answer.scores]
    assert scores == pytest.approx(expected.scores.tolist(), abs=1e-4)
    assert all(len(set(answer.exit_layers)) == 1 for answer in answers)


def test_a_run_of_edr_on_words_is_its_replay(de3_words):
    policy = Policy.parse(f"edr(lambda=1.0) < {middle(de3_words, 'edr(lambda=1.0)')}")
    expected = replay(de3_words.trace(SENTENCES), policy)
    answers = de3_words.predict(SENTENCES, policy=policy)
    assert [m for a in answers for m in a.exit_layers] == expected.exit_layers.tolist()
    assert len(set(expected.exit_layers.tolist())) > 1


@pytest.mark.parametrize("size", [2, 7, 64])
@pytest.mark.parametrize("rule", ["entropy < {tau}", "entropy < {tau} window 3"])
def test_batching_changes_no_answer(sentee, size, rule):
    policy = rule.format(tau=middle(sentee))
    alone = [said(sentee, policy, 1, [words])[0] for words in SENTENCES]
    assert said(sentee, policy, size) == alone
    assert len({m for _, layers in alone for m in layers}) > 1


def test_one_sentence_with_a_window_over_all_of_it_is_sentee(tokee):
    tau = middle(tokee)
    assert said(tokee, f"entropy < {tau} window 99") == said(tokee, f"entropy < {tau}")


def test_a_threshold_of_nothing_is_full_depth(tokee):
    full = said(tokee, "full")
    assert said(tokee, "entropy < 0.0 window 5") == full
    assert {m for _, layers in full for m in layers} == {4}
    assert {m for _, layers in said(tokee, "entropy < 1.01 window 5") for m in layers} == {1}


def test_words_of_one_sentence_halt_at_different_layers(tokee):
    tau = middle(tokee)
    answers = said(tokee, f"entropy < {tau} window 3")
    assert any(len(set(layers)) > 1 for _, layers in answers)
    sentee = said(tokee, f"entropy < {tau}")
    earlier = sum(sum(layers) for _, layers in answers) < sum(sum(layers) for _, layers in sentee)
    assert earlier


def test_the_engine_copies_states_as_training_does(tokee):
    """What a run with halting says is what the model says when it is told where words halt."""
    tau = middle(tokee)
    policy = Policy.parse(f"entropy < {tau} window 3")
    rows = tokee.backend.encoder(SENTENCES).rows
    outcome = run_batch(tokee.backend, rows, policy)
    model = tokee.backend.model
    batch = tokee.backend.encoder.pad(rows)
    counts = [max(row["word_ids"]) for row in rows]
    parts = np.split(outcome.exit_layers, np.cumsum(counts)[:-1])
    halts = torch.full((len(rows), max(counts)), 4)
    for row, part in enumerate(parts):
        halts[row, : len(part)] = torch.from_numpy(part)
    with torch.no_grad():
        logits = model(**batch, halts=halts).exit_logits.numpy()
    taken = logits[np.arange(len(logits)), outcome.exit_layers - 1]
    np.testing.assert_allclose(outcome.logits, taken, atol=1e-4)
    with torch.no_grad():
        free = model(**batch).exit_logits.numpy()
    assert np.abs(free[np.arange(len(free)), outcome.exit_layers - 1] - taken).max() > 1e-3


def test_halted_states_stay_bit_by_bit_in_the_engine(tokee):
    backend = tokee.backend
    state = backend.start(
        backend.encoder([["a", "film-movie", "was", "good"], ["the", "plot"]]).rows
    )
    state, _ = backend.advance(state, 1, read=True)
    before = state.hidden.clone()
    state = backend.halt(state, np.array([True, True, False, False, False, True]))
    state, _ = backend.advance(state, 2, read=True)
    halted = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)]
    for row, token in halted:
        assert torch.equal(state.hidden[row, token], before[row, token])
    for row, token in [(0, 0), (0, 5), (0, 6), (0, 7), (1, 0), (1, 1), (1, 3)]:
        assert not torch.equal(state.hidden[row, token], before[row, token])
    # They stay halted, and where they are, when another sentence leaves the batch.
    state = backend.keep(state, np.array([False, True]))
    state, _ = backend.advance(state, 4, read=True)
    assert torch.equal(state.hidden[0, 2], before[1, 2])
    assert not torch.equal(state.hidden[0, 1], before[1, 1])


def test_layers_are_really_not_run(sentee, monkeypatch):
    calls, policy = [], f"entropy < {middle(sentee)}"
    layer = type(sentee.backend.model.encoder).layer
    monkeypatch.setattr(
        type(sentee.backend.model.encoder), "layer",
        lambda self, p, n, h: calls.append((n, len(h))) or layer(self, p, n, h),
    )  # fmt: skip
    answers = sentee.predict(SENTENCES, policy=policy, batch_size=64)
    for number in range(1, 5):
        rows = sum(rows for n, rows in calls if n == number)
        assert rows == sum(max(answer.exit_layers) >= number for answer in answers)


def test_words_behind_the_limit_have_no_answer(sentee):
    answer = sentee.predict([["film"] * 50], policy="full")[0]
    assert answer.truncated
    assert not sentee.predict([["film"] * 5], policy="full")[0].truncated
    assert len(answer.tags) == 50
    assert answer.tags[:30].count(None) == 0
    assert set(answer.tags[30:]) == {None} == set(answer.exit_layers[30:])
    table = read_words({"words": [["film"] * 50], "tags": [["O"] * 50]})
    assert evaluate(sentee, table, policy="full", metric="accuracy").rows == 50


def test_scores_are_those_of_the_answers(sentee, word_data):
    from de3bert.exits.spans import spans

    table = read_words(word_data.test)
    found = evaluate(sentee, table, policy=f"entropy < {middle(sentee)}")
    answers = sentee.predict(table.inputs(), policy=found.policy)
    assert found.metric == "span_f1"
    there, given = [spans(tags) for tags in table.labels], [spans(a.tags) for a in answers]
    hits = sum(len(one & other) for one, other in zip(there, given, strict=True))
    count = sum(map(len, there)) + sum(map(len, given))
    assert found.score == pytest.approx(2 * hits / count)
    assert found.scores["span_recall"] == pytest.approx(hits / sum(map(len, there)))
    right = [t == g for a, tags in zip(answers, table.labels, strict=True)
             for t, g in zip(a.tags, tags, strict=True)]  # fmt: skip
    assert found.scores["accuracy"] == pytest.approx(np.mean(right))
    assert found.sentences == 60
    assert sum(found.exit_histogram.values()) == found.rows == len(right)
    assert found.layer_speedup == pytest.approx(4 / found.layers_mean)


@pytest.mark.parametrize("which", ["sentee_model", "de3_tagger"])
def test_a_calibrated_point_runs_as_it_was_measured(which, request, word_data, tmp_path):
    import shutil

    folder = shutil.copytree(request.getfixturevalue(which), tmp_path / "m")
    table = read_words(word_data.calibration)
    point = calibrate_model(folder, "layers=1.5", "fast", table=table, default=True)
    assert str(point.policy).startswith("edr" if which == "de3_tagger" else "entropy")
    tagger = de3bert.load(folder)
    found = evaluate(tagger, table)
    assert found.point == "fast"
    assert found.score == pytest.approx(point.measured["score"])
    assert found.layers_mean == pytest.approx(point.measured["layers_mean"])
    assert found.layer_speedup >= 1.5
    assert "fast" in (folder / "README.md").read_text()


def test_a_trace_counts_pieces_and_leaves_cut_words_out(sentee, word_data):
    words = sentee.trace([["film-movie", "a"], ["film"] * 50])
    assert words.tokens[:2].tolist() == [3, 1]
    assert words.rows == 32
    assert words.sentence.tolist() == [0, 0] + [1] * 30
    made = trace_table(sentee, read_words(word_data.test))
    assert made.info["data"]["rows"] == 60
    assert made.labels is not None


@pytest.mark.parametrize("given", [["a film"], [[]], [["a", ""]], "a film", [["a", 3]]])
def test_what_are_not_sentences_is_refused(sentee, given):
    with pytest.raises(UsageError, match=r"list of (non-empty words|words|sentences)"):
        sentee.predict(given)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("edr(lambda=1.0) < 0.4", "reads distances to prototypes, but this model has none"),
        ("certainty > 0.5", "reads the certainty of a router"),
        ("layer(9)", "no exit at layer 9"),
        ("patience(2)", "does not apply to taggers"),
    ],
)
def test_policies_that_the_model_cannot_run_are_refused(sentee, policy, message):
    with pytest.raises(UsageError, match=message):
        sentee.predict([["a"]], policy=policy)


def test_unknown_points_and_both_at_once(sentee):
    with pytest.raises(UsageError, match='operating point "2x"'):
        sentee.predict([["a"]], point="2x")
    with pytest.raises(UsageError, match="not both"):
        sentee.predict([["a"]], point="full", policy="full")
    assert sentee.predict([]) == []
    with pytest.raises(UsageError, match="batch_size"):
        sentee.predict([["a"]], batch_size=0)
