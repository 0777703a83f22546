"""Training taggers: what they learn, what the second phase of TOKEE sees, refusals."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
import torch
from tests.tagged import toy_sentences, word_recipe, write_jsonl

import de3bert
from de3bert.data.words import read_words
from de3bert.errors import UsageError
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.training.fit import fit
from de3bert.training.inference import exit_logits
from de3bert.training.recipe import DataRecipe, recipe_from
from de3bert.training.rows import Rows
from de3bert.training.self_sampling import THRESHOLDS, WINDOWS, SelfSampling, halting_layers
from de3bert.training.splits import read_splits


def record(folder):
    return json.loads((folder / "training.json").read_text())


@pytest.mark.parametrize("which", ["sentee_model", "tokee_model", "de3_tagger"])
def test_it_learns(which, request, word_data):
    folder = request.getfixturevalue(which)
    log = [entry["loss"] for entry in record(folder)["log"] if "loss" in entry]
    assert np.mean(log[-10:]) < 0.5 * np.mean(log[:10])
    found = evaluate(de3bert.load(folder), read_words(word_data.test), policy="full")
    assert found.scores["accuracy"] > 0.8
    assert found.score > 0.6  # all words `O` gives 0
    majority = 0.6
    assert all(value > majority for value in record(folder)["exit_accuracy"].values())


def test_the_recorded_accuracy_is_that_of_a_trace(sentee_model, word_data):
    tagger = de3bert.load(sentee_model)
    trace = trace_table(tagger, read_words(word_data.calibration))
    shares = trace.correct.mean(axis=0).tolist()
    assert list(record(sentee_model)["exit_accuracy"].values()) == pytest.approx(shares)


def test_the_trainers_own_score_counts_every_word(sentee_model):
    """The Trainer cuts its last batch to as many entries as it has rows: words must be padded."""
    log = record(sentee_model)["log"]
    best = max(e["eval_mean_exit_accuracy"] for e in log if "eval_mean_exit_accuracy" in e)
    kept = list(record(sentee_model)["exit_accuracy"].values())
    assert best == pytest.approx(np.mean(kept))


def test_de3_on_words_has_a_prototype_for_every_tag(de3_tagger):
    model = de3bert.load(de3_tagger).backend.model
    assert model.prototypes.vectors.shape == (3, 3, 32)
    assert model.prototypes.initialised.all()
    assert model.prototypes.separation().min() > 1e-4


def test_tokee_has_two_phases(tokee_model):
    assert [p["name"] for p in record(tokee_model)["phases"]] == ["joint", "self-sampling"]


def test_where_words_halt_follows_the_rule():
    signals = torch.tensor([[0.04, 0.01, 0.01], [0.2, 0.09, 0.01], [0.2, 0.2, 0.19], [0.01] * 3])
    # tau 0.1 at layers 1 and 2, 0.2 at layer 3 of 4.
    assert halting_layers(signals, [1, 2, 3, 4], 1, 0.1) == [1, 2, 3, 1]
    # Each word waits for its neighbours.
    assert halting_layers(signals, [1, 2, 3, 4], 3, 0.1) == [2, 3, 3, 3]
    assert halting_layers(signals, [1, 2, 3, 4], 3, 0.05) == [3, 4, 4, 4]
    # A layer in the middle belongs to the lower half.
    assert halting_layers(torch.tensor([[0.15]]), [2, 4], 1, 0.1) == [4]
    assert halting_layers(torch.tensor([[0.15]]), [3, 4], 1, 0.1) == [3]


def hook_of(folder, word_data, **options):
    from de3bert.data.labels import LabelSet
    from de3bert.training.hook import PhaseContext

    backend = de3bert.load(folder).backend
    table = read_words(word_data.test)
    labels = LabelSet(backend.info.label_names)
    rows = Rows(backend.encoder(table.inputs()), [labels.encode(t) for t in table.labels])
    chosen = {"full_share": 0.4, **options}
    return SelfSampling(
        PhaseContext(backend.model, rows, rows, backend.encoder, chosen, "", None, 3)
    )


def test_self_sampling_draws_by_what_the_model_said(sentee_model, word_data):
    from de3bert.exits.signals.formulas import entropy

    hook = hook_of(sentee_model, word_data, full_share=0.0)
    hook.before()
    rows, model = hook.context.rows, hook.context.model
    said = exit_logits(model, rows, hook.context.encoder).split(rows.units)
    unsure = rows.extras["unsure"]
    assert unsure.shape == (60, max(map(len, said)), 3)
    torch.testing.assert_close(unsure[7, : len(said[7])], entropy(said[7][:, :-1]))
    given = {
        "word_ids": torch.tensor([[0, *range(1, len(said[7]) + 1), 0]]),
        "extras": {"unsure": unsure[7:8], "other": torch.ones(1)},
    }
    hook._draw = lambda generator: (5, 0.25)
    hook.before_pass(given, torch.Generator().manual_seed(1))
    hook.after()
    expected = halting_layers(entropy(said[7][:, :-1]), [1, 2, 3, 4], 5, 0.25)
    assert given["halts"][0, : len(expected)].tolist() == expected
    assert set(given["extras"]) == {"other"}


def test_what_self_sampling_draws(sentee_model, word_data):
    hook = hook_of(sentee_model, word_data)
    generator = torch.Generator().manual_seed(0)
    drawn = [hook._draw(generator) for _ in range(4000)]
    full = sum(each is None for each in drawn) / len(drawn)
    assert full == pytest.approx(0.4, abs=0.03)
    pairs = [each for each in drawn if each is not None]
    assert {w for w, _ in pairs} == set(WINDOWS)
    assert {t for _, t in pairs} == set(THRESHOLDS)
    ends = sum(w == WINDOWS[0] or t == THRESHOLDS[-1] for w, t in pairs) / len(pairs)
    chance = 1 - (1 - 1 / len(WINDOWS)) * (1 - 1 / len(THRESHOLDS))
    assert ends == pytest.approx(1 / 3 + 2 / 3 * chance, abs=0.04)
    with pytest.raises(UsageError, match="full_share"):
        hook_of(sentee_model, word_data, full_share=0.9).check()


def test_the_second_phase_really_copies(tiny_backbone, word_data, tmp_path, monkeypatch):
    seen = []
    forward = de3bert.model.EarlyExitForTokenClassification.forward

    @functools.wraps(forward)  # the Trainer reads the names of its parameters
    def spy(self, *arguments, halts=None, **given):
        if self.training:
            seen.append(halts)
        return forward(self, *arguments, halts=halts, **given)

    monkeypatch.setattr(de3bert.model.EarlyExitForTokenClassification, "forward", spy)
    monkeypatch.setattr("de3bert.training.self_sampling.THRESHOLDS", (0.9,))  # one epoch is short
    recipe = recipe_from(
        word_recipe(tiny_backbone, word_data.train, word_data.calibration, "tokee", epochs=1)
    )
    fit(recipe, tmp_path / "m", progress=False)
    assert len(seen) == 40
    assert all(halts is None for halts in seen[:20])
    assert all(halts is not None for halts in seen[20:])
    assert min(int(halts.min()) for halts in seen[20:]) < 4


def test_without_a_calibration_file_a_share_of_the_sentences_is_held(tmp_path):
    rows = toy_sentences(50, 4)
    rows.append((["film"], ["B-RARE"]))
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    for seed in range(12):
        splits = read_splits(DataRecipe(task="words", train=str(path)), seed)
        trained = {tag for row in splits.train_labels for tag in row.tolist()}
        assert trained == set(range(4))  # the rare tag is never held alone
        assert len(splits.train) + len(splits.calibration) == 51
        assert len(splits.calibration) in (4, 5)
    again = read_splits(DataRecipe(task="words", train=str(path)), 11)
    assert again.calibration.texts == splits.calibration.texts


def test_tags_unknown_to_the_training_are_refused(tmp_path):
    train = write_jsonl(tmp_path / "a.jsonl", toy_sentences(20, 4))
    held = write_jsonl(tmp_path / "b.jsonl", [(["film"], ["B-NEW"])])
    data = DataRecipe(task="words", train=str(train), calibration=str(held))
    with pytest.raises(UsageError, match=r'"B-NEW" \(1x\)'):
        read_splits(data, 1)
    one = write_jsonl(tmp_path / "c.jsonl", [(["film", "a"], ["O", "O"])])
    with pytest.raises(UsageError, match='only the class "O"'):
        read_splits(DataRecipe(task="words", train=str(one)), 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["method=joint-entropy"], "joint-entropy classifies texts.*de3-words, sentee, tokee"),
        (["method=de3"], "Method de3 classifies texts"),
        (["data.task=text-classification"], "sentee tags words, but the data are texts"),
        (["data.metric=matthews"], 'token-classification metric "matthews"'),
        (["train.refresh_prototypes=true"], "refresh_prototypes is for texts"),
        (["data.text_pair=x"], "neither text pairs"),
        (["pooling=mean"], "leave pooling out"),
        (["data.task=sentences"], "data.task"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(tiny_backbone, word_data, tmp_path, lines, message):
    settings = word_recipe(tiny_backbone, word_data.train, word_data.calibration, "sentee")
    with pytest.raises(UsageError, match=message):
        fit(recipe_from(settings, lines), tmp_path / "m", progress=False)
    assert not any(tmp_path.iterdir())


def test_a_text_file_with_a_method_for_words_is_refused(tiny_backbone, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\ngood,pos\nbad,neg\n")
    settings = {"backbone": str(tiny_backbone), "method": "tokee", "data": {"train": str(path)}}
    with pytest.raises(UsageError, match="tokee tags words, but the data are texts"):
        fit(recipe_from(settings), tmp_path / "m", progress=False)
