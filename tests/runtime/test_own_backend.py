"""A back end that the package does not know: registered from outside, it does all the work."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.fixtures_trained import NEGATIVE, POSITIVE
from tests.runtime import bag_backend
from tests.runtime.test_stopping import answers
from typer.testing import CliRunner

import de3bert
from de3bert import Classifier
from de3bert.cli.main import app
from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits import Policy, replay
from de3bert.runtime.backends import BACKENDS
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate

PAGE = Path(__file__).parents[2] / "docs" / "extend" / "backend.md"
LAYERS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with weights that only this back end understands."""
    made = tmp_path_factory.mktemp("bag") / "model"
    made.mkdir()
    words = {word: number for number, word in enumerate([*POSITIVE, *NEGATIVE], 1)}
    scores = np.zeros((len(words) + 1, LAYERS, 2), dtype=np.float32)
    strength = np.random.default_rng(3).uniform(0.2, 1.5, (len(words), LAYERS))
    scores[1:, :, 1] = strength * [[1 if word in POSITIVE else -1] for word in words]
    save_file({"scores": scores}, made / "model.safetensors")
    config = {
        "model_type": "de3bert",
        "id2label": {"0": "neg", "1": "pos"},
        "backbone_config": {"model_type": "bag"},
        "exit_layers": [1, 2, 3],
        "max_length": 16,
        "method": "joint-entropy",
        "pooling": "mean",
        "prototypes": "none",
    }
    (made / "config.json").write_text(json.dumps(config))
    (made / "words.json").write_text(json.dumps(words))
    return made


@pytest.fixture(scope="module")
def bag(folder: Path) -> Classifier:
    return de3bert.load(folder, backend="bag")


@pytest.fixture(scope="module")
def texts(toy_data) -> list[str]:
    return list(read_table(toy_data.test).texts)


def test_the_page_prints_it_as_it_is() -> None:
    code = Path(bag_backend.__file__).read_text(encoding="utf-8")
    assert f"```python\n{code}```" in PAGE.read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 40


def test_rows_leave_as_the_trace_says(bag, texts):
    trace = bag.trace(texts, batch_size=7)
    assert trace.logits.shape == (len(texts), LAYERS, 2)
    for line in ("entropy < 0.5", "patience(1)", "layer(2)", "full"):
        expected = replay(trace, Policy.parse(line))
        for size in (1, 5, 200):
            found = bag.predict(texts, policy=line, batch_size=size)
            assert [each.exit_layer for each in found] == expected.exit_layers.tolist()
            assert [bag.label_names.index(each.label) for each in found] == list(expected.labels)
    assert len({each.exit_layer for each in bag.predict(texts, policy="entropy < 0.5")}) == LAYERS


def test_it_is_scored_calibrated_and_explained(folder, bag, toy_data):
    table = read_table(toy_data.test)
    full = evaluate(bag, table, policy="full")
    assert full.score > 0.8
    with pytest.raises(UsageError, match="reads distances to prototypes, but this model has none"):
        bag.predict(["good"], policy="edr < 0.3")
    dev = read_table(toy_data.calibration)
    point = calibrate_model(folder, "layers=1.5", "fast", table=dev, backend="bag")
    assert point.measured["layer_speedup"] >= 1.5
    assert evaluate(de3bert.load(folder, backend="bag"), table, point="fast").layer_speedup > 1.2
    assert "layer" in str(bag.explain("a good film"))


def test_it_travels(bag, texts):
    again = pickle.loads(pickle.dumps(bag))
    assert again.opening == bag.opening
    assert answers(again.predict(texts)) == answers(bag.predict(texts))


def test_verbs_take_it_by_name(folder, toy_data, tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(app, [*map(str, arguments), "--backend", "bag", "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert len(run("predict", folder, toy_data.test)) == 120
    assert run("evaluate", folder, "--data", toy_data.test, "--policy", "full")["rows"] == 120
    traced = run("trace", folder, "--data", toy_data.test, "--out", tmp_path / "bag.trace")
    assert traced["exits"] == [1, 2, 3]
    assert run("inspect", folder)["backend"] == "bag"


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="registered twice"):
        BACKENDS.add("bag", BACKENDS["bag"])
