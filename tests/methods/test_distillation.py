"""The four distillation methods from recipe to answers, and what they become at the edges."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import TINY_WORDS
from tests.fixtures_trained import ToyData, once, toy_recipe, write_csv
from transformers import BertConfig, BertModel

import de3bert
from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.methods import METHODS
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.runtime.evaluate import evaluate
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

NAMES = ("distilbert", "pd", "pkd", "theseus")
Distilled = Callable[..., Path]


@pytest.fixture(scope="session")
def distilled(tmp_path_factory, masked_backbone, toy_data: ToyData) -> Distilled:
    """The folder of a distilled model; the teacher, where there is one, is trained on the way."""

    def folder(method: str) -> Path:
        recipe = recipe_from(toy_recipe(masked_backbone, toy_data), [f"method={method}"])
        return once(
            tmp_path_factory, f"distilled-{method}", lambda out: fit(recipe, out, progress=False)
        )

    return folder


def record(folder: Path) -> dict:
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("method", NAMES)
def test_half_of_the_layers_learn_the_task(method: str, distilled, toy_data) -> None:
    model = de3bert.load(distilled(method))
    assert model.backend.exit_layers == (2,)
    found = evaluate(model, read_table(toy_data.test))
    assert found.score > 0.8  # 8 % of the labels are wrong on purpose
    answers = model.predict(["a great film", "a dull awful bore"])
    assert [answer.label for answer in answers] == ["pos", "neg"]
    assert {answer.exit_layer for answer in answers} == {2}


@pytest.mark.parametrize("method", NAMES)
def test_what_is_saved_is_a_small_model_and_nothing_else(method: str, distilled) -> None:
    folder = distilled(method)
    weights = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["backbone_config"]["num_hidden_layers"] == 2
    assert config["base_depth"] == 4
    assert {name.split(".")[0] for name in weights} == {"encoder", "heads"}
    parts = {"embeddings": len(TINY_WORDS) * 32 + 64 * 32 + 2 * 32 + 2 * 32,
             "layers": 2 * (4 * (32 * 32 + 32) + 2 * 32 * 64 + 64 + 32 + 4 * 32),
             "head": 2 * 32 + 2}  # fmt: skip
    assert sum(value.numel() for value in weights.values()) == sum(parts.values())
    assert not folder.with_name(folder.name + ".training").exists()


@pytest.mark.parametrize("method", NAMES)
def test_loading_has_nothing_to_complain_about(method: str, distilled, caplog) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, info = EarlyExitForSequenceClassification.from_pretrained(
            distilled(method), output_loading_info=True
        )
    assert not any(info[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert not caplog.records


def losses(folder: Path, phase: str) -> list[float]:
    """The losses logged in one phase; steps count from 1 in each."""
    found: dict[str, list[float]] = {}
    names = iter(done["name"] for done in record(folder)["phases"])
    last, name = 10**9, ""
    for entry in record(folder)["log"]:
        if "loss" not in entry:
            continue
        if entry["step"] <= last:
            name = next(names)
        last = entry["step"]
        found.setdefault(name, []).append(entry["loss"])
    return found[phase]


@pytest.mark.parametrize(
    ("method", "phase"),
    [("distilbert", "words"), ("distilbert", "fine-tune"), ("pd", "words"), ("pd", "distil"),
     ("pkd", "train")],
)  # fmt: skip
def test_losses_fall(method: str, phase: str, distilled) -> None:
    values = losses(distilled(method), phase)
    assert len(values) >= 50
    assert np.mean(values[-10:]) < 0.95 * np.mean(values[:5])


def test_the_words_of_the_texts_are_learnt(distilled) -> None:
    """The toy texts have 23 words, far fewer than the vocabulary: log 52 = 3.95."""
    values = losses(distilled("pd"), "words")
    assert values[0] == pytest.approx(np.log(len(TINY_WORDS)), abs=0.4)
    assert np.mean(values[-10:]) < 3.3


@pytest.fixture
def quick(tiny_backbone, toy_data):
    """Settings of a training of 30 steps."""
    return toy_recipe(tiny_backbone, toy_data, epochs=1)


def furthest(first: Path, second: Path) -> float:
    one, two = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert set(one) == set(two)
    return max(float((one[name] - two[name]).abs().max()) for name in one)


def test_patience_without_a_teacher_is_plain_fine_tuning(quick, teacher, tmp_path) -> None:
    plain = recipe_from(quick, ["method=layers-2"])
    fit(plain, tmp_path / "plain", progress=False)
    for name, options in {
        "alone": ["method_options.hard=1", "method_options.soft=0", "method_options.patience=0"],
        "taught": [],
    }.items():
        recipe = recipe_from(quick, ["method=pkd", *options])
        fit(recipe, tmp_path / name, progress=False, teacher=teacher)
    assert furthest(tmp_path / "alone", tmp_path / "plain") < 1e-6
    assert furthest(tmp_path / "taught", tmp_path / "plain") > 1e-3


def test_parts_of_the_teacher_stay_in_theseus(quick, teacher, tmp_path) -> None:
    before = load_file(teacher / "model.safetensors")
    fit(recipe_from(quick, ["method=theseus"]), tmp_path / "m", progress=False, teacher=teacher)
    small = load_file(tmp_path / "m" / "model.safetensors")
    for name, value in small.items():
        assert torch.equal(value, before[name]) != name.startswith("encoder.layers"), name
    again = load_file(teacher / "model.safetensors")
    assert all(torch.equal(again[name], before[name]) for name in before)


def test_phases_of_zero_epochs_are_left_out(quick, teacher, tmp_path) -> None:
    lines = ["method=pd", "method_options.word_epochs=0", "method_options.fine_tune=0.5"]
    fit(recipe_from(quick, lines), tmp_path / "m", progress=False, teacher=teacher)
    done = [(phase["name"], phase["steps"]) for phase in record(tmp_path / "m")["phases"]]
    assert done == [("distil", 30), ("fine-tune", 15)]


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_text_without_labels_is_read_where_there_is_some(quick, teacher, tmp_path, name) -> None:
    (tmp_path / name).write_text("text\n" * name.endswith("csv") + "one two\n" * 64)
    quick["data"]["unlabelled"] = str(tmp_path / name)
    fit(recipe_from(quick, ["method=pd"]), tmp_path / "m", progress=False, teacher=teacher)
    phases = record(tmp_path / "m")["phases"]
    assert [(phase["name"], phase["steps"]) for phase in phases] == [("words", 4), ("distil", 30)]
    # Two words alone are soon guessed.
    assert losses(tmp_path / "m", "words")[-1] < losses(tmp_path / "m", "words")[0]


def test_a_phase_without_labels_is_not_scored(quick, teacher, tmp_path) -> None:
    """Nor would early stopping have anything to wait for."""
    lines = ["method=pd", "train.early_stopping=1", "train.epochs=2"]
    fit(recipe_from(quick, lines), tmp_path / "m", progress=False, teacher=teacher)
    log = record(tmp_path / "m")["log"]
    scored = [entry["epoch"] for entry in log if "eval_last_exit_accuracy" in entry]
    assert scored == [1.0, 2.0]  # of `distil` alone


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["method=distilbert"], r"no trained masked-language-model.*methods pd, pkd and theseus"),
        (["method=pkd", "method_options.match=first"], 'match "first"'),
        (["method=pkd", "method_options.layers=1"], "take layers=2 to layers=4"),
        (["method=pkd", "method_options.layers=5"], "take 1 to 4"),
        (["method=theseus", "method_options.rate=0"], "rate must be a number above 0"),
        (["method=theseus", "method_options.schedule=fast"], 'schedule "fast"'),
        (["method=pd", "method_options.word_epochs=-1"], "word_epochs must be a number at least 0"),
        (["method=pd", "data.unlabelled=nowhere.csv"], "There is no file"),
    ],
)
def test_a_request_that_is_wrong_trains_nothing(quick, tmp_path, lines, words) -> None:
    with pytest.raises(UsageError, match=words):
        fit(recipe_from(quick, lines), tmp_path / "m", progress=False)
    assert not list(tmp_path.iterdir())


def test_a_teacher_of_other_labels_is_refused_before_any_phase(quick, teacher, tmp_path) -> None:
    from tests.fixtures_trained import toy_rows

    rows = [(text, {"pos": "up", "neg": "down"}[label]) for text, label in toy_rows(64, 1)]
    quick["data"] = {"train": str(write_csv(tmp_path / "t.csv", rows)), "max_length": 24}
    for method in ("pd", "pkd", "theseus"):
        with pytest.raises(UsageError, match="for the labels neg, pos"):
            fit(recipe_from(quick, [f"method={method}"]), tmp_path / "m", teacher=teacher,
                progress=False)  # fmt: skip
    assert not list(tmp_path.rglob("checkpoint-*"))


def test_they_are_declared_as_the_papers_have_them() -> None:
    for name in NAMES:
        method = METHODS[name]
        assert method.group == "distillation"
        assert not method.internal_exits
        assert method.families == ("layers",)
        assert method.teacher == (None if name == "distilbert" else "full")
    weights = {term.loss: METHODS["distilbert"].options[term.weight]
               for term in METHODS["distilbert"].phases[0].terms}  # fmt: skip
    assert weights == {"word_knowledge": 5.0, "masked_words": 2.0, "token_directions": 1.0}
    assert METHODS["distilbert"].options["temperature"] == 2.0
    weights = {term.loss: METHODS["pkd"].options[term.weight] for term in METHODS["pkd"].terms}
    assert weights == {"cross_entropy": 0.5, "knowledge": 0.5, "patient_states": 100.0}
    assert METHODS["pkd"].options["temperature"] == 5.0


@pytest.mark.parametrize("method", NAMES)
def test_known_sizes_of_bert(method: str) -> None:
    """6 of BERT-base's layers: 66,955,008 with the pooler, DistilBERT's 66,362,880 without."""
    with torch.device("meta"):
        backbone = BertModel(BertConfig())
        model = EarlyExitForSequenceClassification.from_backbone(
            backbone, num_labels=2, method=method, pooling="shared_pooler"
        )
    size = sum(weight.numel() for weight in model.parameters())
    assert model.config.depth == 6
    assert size == 66_955_008 + 1_538
    pooler, token_types = 590_592, 2 * 768
    assert size - 1_538 - pooler - token_types == 66_362_880
