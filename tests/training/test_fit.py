"""Training: what it learns, writes, notes and refuses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.runtime.evaluate import evaluate
from de3bert.training.fit import fit, is_finished
from de3bert.training.recipe import DataRecipe, recipe_from
from de3bert.training.splits import read_splits

QUICK = ["train.epochs=1"]
NO_GPU = pytest.mark.skipif(torch.accelerator.is_available(), reason="a GPU trains in fp16")


@pytest.fixture
def settings(tiny_backbone, toy_data):
    return toy_recipe(tiny_backbone, toy_data)


@pytest.fixture
def small(tiny_backbone, toy_data, tmp_path):
    """Settings of a training of a few steps, without a calibration file."""
    made = toy_recipe(tiny_backbone, toy_data)
    made["data"] = {"train": str(write_csv(tmp_path / "s.csv", toy_rows(64, 5))), "max_length": 24}
    made["train"]["epochs"] = 1
    return made


def record(folder: Path) -> dict:
    return json.loads((folder / "training.json").read_text())


def test_it_learns(trained_model, toy_data):
    log = [entry["loss"] for entry in record(trained_model)["log"] if "loss" in entry]
    assert np.mean(log[-10:]) < 0.6 * np.mean(log[:10])
    from de3bert.data.read import read_table

    found = evaluate(de3bert.load(trained_model), read_table(toy_data.test), metric="f1")
    assert found.scores["accuracy"] > 0.8  # 8 % of the labels are wrong on purpose
    assert found.score > 0.8
    assert all(value > 0.8 for value in record(trained_model)["exit_accuracy"].values())


def test_what_lies_in_a_model_folder(trained_model, tiny_backbone, toy_data):
    names = {path.name for path in trained_model.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "recipe.toml", "README.md",
            "training.json"} <= names  # fmt: skip
    assert not any(name.startswith((".", "checkpoint")) for name in names)
    stored = recipe_from(tomllib.loads((trained_model / "recipe.toml").read_text()))
    # Another worker may have built the model, on a backbone of its own.
    wanted = recipe_from(toy_recipe(tiny_backbone, toy_data))
    assert stored.model_copy(update={"backbone": wanted.backbone}) == wanted
    seen = record(trained_model)
    assert seen["rows"] == {"train": 480, "calibration": 120}
    assert seen["steps"] == 90
    assert is_finished(trained_model)
    assert not trained_model.with_name(trained_model.name + ".training").exists()


def test_calibration_rows_are_not_trained_on(toy_data):
    splits = read_splits(DataRecipe(train=str(toy_data.train), calibration_share=0.2), seed=3)
    train, held = set(splits.train.columns["id"]), set(splits.calibration.columns["id"])
    assert (len(train), len(held)) == (384, 96)
    assert not train & held
    assert np.bincount(splits.calibration_labels).min() > 30
    again = read_splits(DataRecipe(train=str(toy_data.train), calibration_share=0.2), seed=3)
    assert again.calibration.texts == splits.calibration.texts
    other = read_splits(DataRecipe(train=str(toy_data.train), calibration_share=0.2), seed=4)
    assert other.calibration.texts != splits.calibration.texts


def test_the_checkpoint_with_the_best_mean_exit_accuracy_is_kept(small, tmp_path, monkeypatch):
    scores = iter([0.5, 0.9, 0.4, 0.9])  # three epochs, and the model that was kept
    second = []

    def scripted(layers, result):
        value = next(scores)
        if value == 0.4:
            stored = tmp_path / "m.training" / "checkpoint-6" / "model.safetensors"
            second.append(stored.read_bytes())
        return {"mean_exit_accuracy": value, **{f"accuracy_layer_{m}": value for m in layers}}

    monkeypatch.setattr("de3bert.training.trainer.exit_metrics", scripted)
    fit(recipe_from(small, ["train.epochs=3"]), tmp_path / "m", progress=False)
    (best,) = second
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == best


def test_the_score_of_a_checkpoint_is_the_mean_over_exits():
    from types import SimpleNamespace

    from de3bert.training.trainer import exit_metrics

    answers = SimpleNamespace(predictions=[[0, 1], [1, 1], [0, 1]], label_ids=[1, 1, 1])
    found = exit_metrics([2, 4], answers)
    assert found["accuracy_layer_2"] == pytest.approx(1 / 3)
    assert found["accuracy_layer_4"] == 1
    assert found["mean_exit_accuracy"] == pytest.approx(2 / 3)


def test_early_stopping_ends_before_all_epochs(settings, tmp_path):
    lines = ["train.epochs=12", "train.learning_rate=1e-7", "train.early_stopping=1"]
    trained = fit(recipe_from(settings, lines), tmp_path / "m", progress=False)
    assert trained.steps < 12 * 30


def test_gradient_accumulation_takes_fewer_and_equal_steps(settings, tmp_path):
    """Four batches of 8 make the step of one batch of 32, but for dropout and order."""
    lines = [*QUICK, "train.batch_size=8", "train.gradient_accumulation=4"]
    trained = fit(recipe_from(settings, lines), tmp_path / "a", progress=False)
    assert trained.steps == 480 // 32
    plain = fit(recipe_from(settings, [*QUICK, "train.batch_size=32"]), tmp_path / "b",
                progress=False)  # fmt: skip
    assert plain.steps == trained.steps
    first = [
        next(entry["loss"] for entry in record(tmp_path / name)["log"] if "loss" in entry)
        for name in "ab"
    ]
    assert first[0] == pytest.approx(first[1], rel=0.2)


@pytest.mark.parametrize("method", ["joint-entropy", "full"])
def test_other_methods_train_and_predict(settings, tmp_path, method):
    trained = fit(recipe_from(settings, [*QUICK, f"method={method}"]), tmp_path / "m",
                  progress=False)  # fmt: skip
    loaded = de3bert.load(tmp_path / "m")
    assert not loaded.has_prototypes
    exits = (4,) if method == "full" else (1, 2, 3, 4)
    assert loaded.backend.exit_layers == exits
    assert tuple(trained.exit_accuracy) == exits
    answers = loaded.predict(["a good film", "a dull bore"], policy="entropy < 1.01")
    assert {answer.exit_layer for answer in answers} == {exits[0]}


def test_three_classes_named_by_words(small, tmp_path):
    rows = [(f"{text} two" if index % 3 == 0 else text, "two" if index % 3 == 0 else label)
            for index, (text, label) in enumerate(toy_rows(150, 6))]  # fmt: skip
    small["data"]["train"] = str(write_csv(tmp_path / "three.csv", rows))
    fit(recipe_from(small, ["train.epochs=3"]), tmp_path / "m", progress=False)
    loaded = de3bert.load(tmp_path / "m")
    assert loaded.label_names == ("neg", "pos", "two")
    assert loaded.predict(["the film two two", "two a movie"])[0].label == "two"
    from de3bert.data.read import read_table

    table = read_table(tmp_path / "three.csv")
    found = evaluate(loaded, table, metric="macro_f1")
    assert found.score > 0.5
    with pytest.raises(UsageError, match="f1"):
        evaluate(loaded, table, metric="f1")


def test_texts_that_were_cut_are_noted(small, tmp_path):
    small["data"]["max_length"] = 8
    trained = fit(recipe_from(small), tmp_path / "m", progress=False)
    (note,) = [note for note in trained.notes if "truncated" in note]
    assert "to 8 tokens" in note
    assert record(tmp_path / "m")["notes"] == trained.notes


def test_exits_at_chance_are_noted(small, tmp_path):
    trained = fit(recipe_from(small, ["train.learning_rate=1e-9"]), tmp_path / "m", progress=False)
    assert any("no better than always predicting" in note for note in trained.notes)
    assert any('they read "mean"' in note for note in trained.notes)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("good", "pos"), ("great", "pos"), ("fine", "pos")], 'only the class "pos"'),
        ([("good", "pos"), ("", "neg")], 'an empty "text"'),
        ([("good", "pos"), ("bad", "")], "no label"),
        ([("good", "pos"), ("bad", "neg")], "Too few rows"),
    ],
)
def test_rows_that_cannot_be_trained_on(small, tmp_path, rows, words):
    small["data"]["train"] = str(write_csv(tmp_path / "bad.csv", rows))
    with pytest.raises(De3Error, match=words):
        fit(recipe_from(small), tmp_path / "m", progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "s.csv"]


def test_calibration_labels_that_training_never_saw(small, tmp_path):
    held = write_csv(tmp_path / "held.csv", [("good", "pos"), ("meh", "mixed")])
    small["data"]["calibration"] = str(held)
    with pytest.raises(UsageError, match=r'"mixed" \(1x\)'):
        fit(recipe_from(small), tmp_path / "m", progress=False)
    assert not (tmp_path / "m.training").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("method=dee3", 'Did you mean "de3"'),
        ("pooling=maen", 'Did you mean "mean"'),
        ("method_options.alhpa=1", 'Did you mean "alpha"'),
        ("data.metric=f2", "Unknown metric"),
        ("exit_layers=[7]", "exit_layers must lie in 1..4"),
        ("data.train=nowhere.csv", "There is no file"),
        ("data.text=body", 'no column "body"'),
        pytest.param("train.mixed_precision=fp16", "needs a GPU", marks=NO_GPU),
    ],
)
def test_a_request_that_is_wrong_writes_nothing(small, tmp_path, line, words):
    with pytest.raises(UsageError, match=words):
        fit(recipe_from(small, [line]), tmp_path / "m", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["s.csv"]


def test_a_backbone_that_is_none(small, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    small["backbone"] = "no-such-backbone"
    with pytest.raises(UsageError, match='No backbone "no-such-backbone"'):
        fit(recipe_from(small), tmp_path / "m", progress=False)


def test_a_model_is_replaced_only_when_asked(small, model_copy):
    before = (model_copy / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="--overwrite"):
        fit(recipe_from(small), model_copy, progress=False)
    assert (model_copy / "model.safetensors").read_bytes() == before
    fit(recipe_from(small), model_copy, overwrite=True, progress=False)
    assert (model_copy / "model.safetensors").read_bytes() != before
    assert record(model_copy)["rows"] == {"train": 58, "calibration": 6}


def test_what_is_not_a_model_of_ours_is_never_replaced(small, tmp_path, tiny_backbone):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("more of it")
    for place in (tmp_path / "thesis", tmp_path / "file", tiny_backbone):
        with pytest.raises(UsageError, match="not a model folder"):
            fit(recipe_from(small), place, overwrite=True, progress=False)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "more of it"


def test_the_same_seed_gives_the_same_weights(small, tmp_path):
    from safetensors.torch import load_file

    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit(recipe_from(small, [f"train.seed={seed}"]), tmp_path / name, progress=False)
        weights.append(load_file(tmp_path / name / "model.safetensors"))
    first, second, other = weights
    assert furthest(first, second) < 1e-6
    assert furthest(first, other) > 1e-3


def furthest(first, second) -> float:
    """The largest difference between two sets of weights."""
    assert set(first) == set(second)
    return max(float((first[name].float() - second[name].float()).abs().max()) for name in first)


def test_bfloat16_trains_on_any_machine(small, tmp_path):
    seen = set()

    def look(module, inputs, output):
        if isinstance(module, torch.nn.Linear):
            seen.add(output.dtype)

    hook = torch.nn.modules.module.register_module_forward_hook(look)
    try:
        fit(recipe_from(small, ["train.mixed_precision=bf16"]), tmp_path / "m", progress=False)
    finally:
        hook.remove()
    assert torch.bfloat16 in seen


@pytest.mark.parametrize("wanted", [False, True])
def test_the_recipe_decides_whether_batches_are_grouped(small, tmp_path, monkeypatch, wanted):
    from de3bert.training import sampling

    seen = []
    usual = sampling.EpochOrder.__init__

    def spy(self, lengths, batch, group, seed, epoch):
        seen.append(group)
        usual(self, lengths, batch, group, seed, epoch)

    monkeypatch.setattr(sampling.EpochOrder, "__init__", spy)
    fit(recipe_from(small, [f"train.group_by_length={str(wanted).lower()}"]), tmp_path / "m",
        progress=False)  # fmt: skip
    assert seen
    assert all((group is not None) == wanted for group in seen)


@pytest.mark.parametrize("method", ["de3", "leebert", "gpfee"])
def test_heads_learn_at_their_own_rate(small, tmp_path, monkeypatch, method):
    from de3bert.training.trainer import OrderedTrainer

    rates = {}
    usual = OrderedTrainer.create_optimizer

    def spy(self, model=None):
        optimizer = usual(self, model)
        names = {id(p): name.partition(".")[0] for name, p in self.model.named_parameters()}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                rates.setdefault(names.pop(id(parameter)), set()).add(group["lr"])
        assert not names  # every parameter is in one group
        return optimizer

    monkeypatch.setattr(OrderedTrainer, "create_optimizer", spy)
    lines = ["train.learning_rate=0.001", "train.head_rate=20", f"method={method}"]
    fit(recipe_from({**small, "method_options": {}}, lines), tmp_path / "m", progress=False)
    own = {
        "de3": {"projectors": {0.001}},
        "leebert": {"objective": {0.01}},
        "gpfee": {"pooling": {0.02}},  # poolers that start from nothing
    }[method]
    assert rates == {"encoder": {0.001}, "heads": {0.02}, **own}


def test_other_rows_under_the_same_name_do_not_resume(small, tmp_path):
    from de3bert.training.output_folder import MARKER, check_scratch

    splits = read_splits(DataRecipe(**small["data"]), seed=1)
    scratch = tmp_path / "m.training"
    (scratch / "checkpoint-3").mkdir(parents=True)
    (scratch / "checkpoint-3" / "trainer_state.json").write_text("{}")
    (scratch / MARKER).write_text(splits.fingerprint())
    check_scratch(scratch, splits.fingerprint())
    write_csv(Path(small["data"]["train"]), toy_rows(64, 6))
    changed = read_splits(DataRecipe(**small["data"]), seed=1)
    with pytest.raises(UsageError, match="other rows"):
        check_scratch(scratch, changed.fingerprint())


def test_refreshed_prototypes_are_the_class_means_of_all_training_rows(small, tmp_path):
    out = tmp_path / "m"
    fit(recipe_from(small, ["train.refresh_prototypes=true"]), out, progress=False)
    classifier = de3bert.load(out)
    assert classifier.info.prototype_means == "all rows"
    model, encoder = classifier.backend.model, classifier.backend.encoder
    splits = read_splits(DataRecipe(**small["data"]), seed=small["train"].get("seed", 42))
    sums, counts = 0.0, np.zeros(2)
    for row, label in zip(encoder(splits.train.inputs()).rows, splits.train_labels, strict=True):
        projected = model(**encoder.pad([row])).projected[0].detach().double().numpy()
        sums = sums + np.eye(2)[label][None, :, None] * projected[:, None, :]
        counts[label] += 1
    expected = sums / counts[None, :, None]
    np.testing.assert_allclose(model.prototypes.vectors.numpy(), expected, atol=1e-5)


def test_refreshing_without_prototypes_is_refused(small, tmp_path):
    small["method"] = "joint-entropy"
    with pytest.raises(UsageError, match="prototypes"):
        fit(recipe_from(small, ["train.refresh_prototypes=true"]), tmp_path / "m", progress=False)
    assert not (tmp_path / "m.training").exists()
