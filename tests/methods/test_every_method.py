"""Every method from training to a bundle, on toy data: one way for all of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.export.bundles import BUNDLE_BACKENDS, ROUNDING, apart
from tests.fixtures_trained import ToyData, once, toy_recipe
from typer.testing import CliRunner

import de3bert
from de3bert import Classifier
from de3bert.cli.main import app
from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace, curve
from de3bert.exits.family import Family
from de3bert.exits.replay import margin, replay
from de3bert.export.bundle import export_model
from de3bert.methods import METHODS
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import load_tokenizer
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import trace_table
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

TEXT_METHODS = [name for name in METHODS if METHODS[name].task == "text-classification"]
# Those that differ in what they compute; the others share all graphs with one of them.
SHAPES = [
    "full", "layers-k", "joint-entropy", "joint-entropy-calibrated", "de3", "berxit", "gpfee",
    "fastbert", "righttool", "consistentee", "cascadebert", "cascade-truncated", "hashee",
]  # fmt: skip
NEEDS_WORD_HEAD = {"distilbert"}  # its teacher is the backbone's own masked-word head
SPEED = "layers=1.2"

Ready = Callable[[str], Path]


@pytest.fixture(scope="session")
def taught_backbone(tmp_path_factory: pytest.TempPathFactory, trained_model: Path) -> Path:
    """The encoder of a model that knows the toy task: new exits on it need few steps."""

    def build(folder: Path) -> None:
        model = EarlyExitForSequenceClassification.from_pretrained(trained_model)
        model.encoder.backbone.save_pretrained(folder)
        load_tokenizer(trained_model).save_pretrained(folder)

    return once(tmp_path_factory, "taught-backbone", build)


@pytest.fixture(scope="session")
def ready(
    tmp_path_factory: pytest.TempPathFactory, taught_backbone: Path, small_backbone: Path,
    toy_data: ToyData,
) -> Ready:  # fmt: skip
    """The folder of a method's model, trained by the first test that asks."""

    def folder(method: str) -> Path:
        settings = {**toy_recipe(taught_backbone, toy_data, epochs=0.5), "method": method}
        if METHODS[method].cascade == "own":
            settings["small_backbone"] = str(small_backbone)
        recipe = recipe_from(settings)
        return once(
            tmp_path_factory, f"method-{method}", lambda out: fit(recipe, out, progress=False)
        )

    return folder


@pytest.fixture
def texts(toy_data: ToyData) -> list[str]:
    return [str(text) for text in read_table(toy_data.test).inputs()][:60]


def policies(method: str, trace: Trace) -> list[Policy]:
    """Full depth, and of each of the method's families a policy that leaves early here.

    Of several thresholds the one with the most rows clear of it: a saturated signal has crowds of
    rows within rounding error of most thresholds.
    """
    chosen = [Policy.parse("full")]
    for text in METHODS[method].families:
        family = Family.parse(text)
        if family.kind in ("oracle", "bandit") or trace.exits < 2:
            continue
        points = curve(trace, family)
        inner = range(1, max(2, len(points) - 1), max(1, len(points) // 25))
        tried = [points.policy(index) for index in inner if index < len(points)]
        if not tried:  # 4 exits in a row, where there are 3 before the last
            continue
        chosen.append(max(tried, key=lambda policy: (margin(trace, policy) > ROUNDING).mean()))
    return chosen


@pytest.mark.parametrize("method", sorted(set(TEXT_METHODS) - NEEDS_WORD_HEAD))
def test_it_learns_and_its_folder_says_what_it_is(method: str, ready: Ready) -> None:
    folder = ready(method)
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    for phase in METHODS[method].phases:
        assert phase.name in {done["name"] for done in record["phases"]} or phase.epochs != 1.0
    losses = [entry["loss"] for entry in record["log"] if "loss" in entry]
    assert np.isfinite(losses).all()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["method"] == method
    assert config["base_depth"] == 4
    assert max(record["exit_accuracy"].values()) > 0.75


@pytest.mark.parametrize("method", sorted(set(TEXT_METHODS) - NEEDS_WORD_HEAD))
def test_replay_is_run_at_any_batch_size(method: str, ready: Ready, texts: list[str]) -> None:
    classifier = de3bert.load(ready(method))
    trace = classifier.trace(texts, np.zeros(len(texts), dtype=np.int64))
    for policy in policies(method, trace):
        expected = replay(trace, policy)
        sure = margin(trace, policy) > ROUNDING
        assert sure.mean() > 0.8
        for size in (1, 7, 64):
            answers = classifier.predict(texts, policy=policy, batch_size=size)
            layers = np.array([answer.exit_layer for answer in answers])
            labels = np.array([classifier.label_names.index(a.label) for a in answers])
            assert (layers == expected.exit_layers)[sure].all()
            assert (labels == expected.labels)[sure].all()


@pytest.mark.parametrize("method", sorted(set(TEXT_METHODS) - NEEDS_WORD_HEAD))
def test_calibrate_stores_a_point_that_predict_uses(
    method: str, ready: Ready, toy_data: ToyData, tmp_path: Path, texts: list[str]
) -> None:
    folder = Path(shutil.copytree(ready(method), tmp_path / "model"))
    table = read_table(toy_data.calibration)
    if METHODS[method].families == ("layers",) or method == "oracle":
        with pytest.raises(UsageError):
            calibrate_model(folder, SPEED, "fast", table=table)
        return
    if METHODS[method].families == ("bandit",):
        policy = "bandit"
        answers = de3bert.load(folder).predict(texts, policy=policy)
    else:
        point = calibrate_model(folder, SPEED, "fast", table=table)
        assert point.measured["layer_speedup"] >= 1.2 - 1e-9
        answers = de3bert.load(folder).predict(texts, "fast")
    assert len(answers) == len(texts)
    assert {answer.label for answer in answers} <= {"neg", "pos"}


@pytest.mark.parametrize("method", SHAPES)
def test_a_bundle_answers_as_the_model_does(
    method: str, ready: Ready, texts: list[str], tmp_path: Path
) -> None:
    folder = ready(method)
    export_model(folder, tmp_path / "bundle")
    for backend in BUNDLE_BACKENDS:
        bundle = de3bert.load(tmp_path / "bundle", backend=backend)
        check_same_answers(method, de3bert.load(folder), bundle, texts)


def check_same_answers(
    method: str, model: Classifier, bundle: Classifier, texts: list[str]
) -> None:
    labels = np.zeros(len(texts), dtype=np.int64)
    first, second = model.trace(texts, labels), bundle.trace(texts, labels)
    assert apart(first, second) < ROUNDING
    if first.certainty is not None:
        assert second.certainty is not None
        np.testing.assert_allclose(first.certainty, second.certainty, atol=ROUNDING)
    for policy in policies(method, first):
        sure = margin(first, policy) > 2 * ROUNDING
        ours = [a.exit_layer for a in model.predict(texts, policy=policy)]
        theirs = [a.exit_layer for a in bundle.predict(texts, policy=policy, batch_size=5)]
        assert (np.array(ours) == np.array(theirs))[sure].all()


@pytest.mark.parametrize("method", ["gpfee", "cascadebert", "cascade-truncated"])
def test_bench_times_models_that_are_no_plain_stack_of_heads(
    method: str, ready: Ready, toy_data: ToyData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads that look back and cascades: the plain contenders must answer as the model does."""
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    export_model(ready(method), tmp_path / "bundle")
    short = ["--data", str(toy_data.test), "--texts", "6", "--rounds", "2", "--against", "hf"]
    said = CliRunner().invoke(app, ["bench", str(tmp_path / "bundle"), *short, "--json"])
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    assert document["answers_ok"] is True
    assert {row["name"] for row in document["contenders"]} == {"hf", "ours:full"}


@pytest.mark.parametrize(
    "method", [name for name in TEXT_METHODS if METHODS[name].training is not None]
)
def test_methods_that_share_a_training_have_the_same_weights(method: str, ready: Ready) -> None:
    shared = METHODS[method].training
    assert shared is not None
    own = (ready(method) / "model.safetensors").read_bytes()
    assert own == (ready(shared) / "model.safetensors").read_bytes()


def test_temperatures_are_fitted_and_used(ready: Ready, toy_data: ToyData) -> None:
    plain = trace_table(de3bert.load(ready("joint-entropy")), read_table(toy_data.calibration))
    folder = ready("joint-entropy-calibrated")
    fitted = json.loads((folder / "config.json").read_text(encoding="utf-8"))["temperatures"]
    assert len(fitted) == 4
    assert any(abs(value - 1) > 0.01 for value in fitted)
    calibrated = trace_table(de3bert.load(folder), read_table(toy_data.calibration))
    np.testing.assert_allclose(
        calibrated.logits, plain.tempered(fitted).logits, atol=1e-4, rtol=1e-4
    )
