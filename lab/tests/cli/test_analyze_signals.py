"""`de3 analyze lambda|alpha|correctness|homogeneity` on a tiny trained model, and mistakes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures_trained import once, toy_rows, write_csv

from de3bert.exits import Trace, curve

USAGE = 2
FILES = ("result.json", "table.md", "table.tex", "figure.png", "figure.svg")
NAMES = ("lambda", "alpha", "correctness", "homogeneity")


@pytest.fixture(scope="session")
def toy_trace(tmp_path_factory, trained_model, toy_data) -> Path:
    """The trained model's trace of the test rows."""
    from de3bert.data.read import read_table
    from de3bert.runtime.evaluate import trace_table
    from de3bert.runtime.load import load

    def build(folder: Path) -> None:
        folder.mkdir()
        trace_table(load(trained_model), read_table(toy_data.test)).save(folder / "toy.trace")

    return once(tmp_path_factory, "signals-trace", build) / "toy.trace"


def changed(path: Path, folder: Path, name: str, **changes) -> Path:
    """A copy of the trace that differs in some fields."""
    found = folder / f"{name}.trace"
    replace(Trace.load(path), **changes).save(found)
    return found


def read(out: Path, drawn: bool = True) -> dict:
    """The numbers of a finished analysis, whose files are all there; figures where it has any."""
    files = [name for name in FILES if drawn or not name.startswith("figure")]
    assert sorted(path.name for path in out.iterdir()) == sorted(files)
    assert all(path.stat().st_size > 100 for path in out.iterdir())
    return json.loads((out / "result.json").read_text(encoding="utf-8"))["numbers"]


def test_lambda_on_a_model(de3, trained_model, toy_data, toy_trace, tmp_path):
    out = tmp_path / "out"
    said = de3("analyze", "lambda", trained_model, "--data", toy_data.test, "--out", out,
               "--lambda", "1", "--lambda", "3", "--speed", "2", "--json")  # fmt: skip
    assert said.code == 0, said.err
    numbers = read(out)
    assert said.json["numbers"] == numbers
    assert (numbers["lambdas"], numbers["speeds"]) == ([0.0, 1.0, 3.0], [2.0])
    assert numbers["rows"] == 120
    entropy = curve(Trace.load(toy_trace), "entropy").at(2.0)
    assert numbers["by_speed"][0]["scores"][0]["mean"] == pytest.approx(entropy, abs=1e-6)


def test_lambda_on_a_trace_with_the_usual_settings(de3, toy_trace, tmp_path):
    said = de3("analyze", "lambda", toy_trace, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert "Best lambda at each layer speed-up" in said.out
    assert read(tmp_path / "out")["speeds"] == [1.5, 2.0, 2.5, 3.0, 4.0]  # 4 layers, exits from 1


def test_alpha_on_models_and_on_labelled_traces(
    de3, trained_model, model_copy, toy_data, toy_trace, tmp_path
):
    path = model_copy / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    assert config["method_options"]["alpha"] == 0.1
    config["method_options"]["alpha"] = 0.001
    path.write_text(json.dumps(config), encoding="utf-8")
    out = tmp_path / "models"
    said = de3("analyze", "alpha", trained_model, model_copy, "--data", toy_data.test,
               "--speed", "2", "--out", out)  # fmt: skip
    assert said.code == 0, said.err
    numbers = read(out, drawn=False)  # two values make no figure
    assert numbers["alphas"] == [0.001, 0.1]
    assert numbers["below_limit"] is True  # the weights are the same

    old = changed(toy_trace, tmp_path, "old", info={"method": "de3"})
    out = tmp_path / "traces"
    said = de3("analyze", "alpha", f"0.1={toy_trace}", f"0.01={old}", "--lambda", "2", "--out", out)
    assert said.code == 0, said.err
    assert "figure" not in said.out
    assert read(out, drawn=False)["alphas"] == [0.01, 0.1]
    new = changed(toy_trace, tmp_path, "new", info={"method": "de3"})
    three = (f"0.1={toy_trace}", f"0.01={old}", f"0.001={new}")
    out = tmp_path / "three"
    assert de3("analyze", "alpha", *three, "--lambda", "2", "--out", out).code == 0
    assert read(out)["lambda"] == 2.0


def test_correctness_on_a_model(de3, trained_model, toy_data, tmp_path):
    out = tmp_path / "out"
    said = de3("analyze", "correctness", trained_model, "--data", toy_data.test, "--out", out,
               "--tau", "0.3", "--layer", "1", "--layer", "3", "--seed", "7", "--json")  # fmt: skip
    assert said.code == 0, said.err
    numbers = read(out)
    assert said.json["seed"] == 7
    assert [each["layer"] for each in numbers["estimation"]] == [1, 3]
    assert [each["layer"] for each in numbers["auc"]] == [1, 2, 3]


def test_correctness_cuts_the_usual_layers(de3, toy_trace, tmp_path):
    said = de3("analyze", "correctness", toy_trace, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert read(tmp_path / "out")["layers"] == [2]


def test_homogeneity_of_two_kinds(de3, trained_model, toy_data, toy_trace, tmp_path):
    out = tmp_path / "out"
    said = de3("analyze", "homogeneity", f"model={trained_model}", f"trace={toy_trace}",
               "--data", toy_data.test, "--out", out)  # fmt: skip
    assert said.code == 0, said.err
    numbers = read(out)
    first, second = numbers["kinds"]
    assert first["layers"][1]["mean"] == pytest.approx(second["layers"][1]["mean"], abs=1e-3)
    assert numbers["differences"][0]["low"] < 0 < numbers["differences"][0]["high"]


def refused(de3, tmp_path, words: str, *arguments: str | Path) -> None:
    out = tmp_path / "nothing"
    said = de3("analyze", *arguments, "--out", out)
    assert (said.code, said.out) == (USAGE, ""), said.err
    last = said.err.splitlines()[-1]  # below what loading a model may say
    assert last.startswith("error: ")
    assert words in last
    assert not out.exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_without_distances(de3, toy_trace, tmp_path, name):
    bare = changed(toy_trace, tmp_path, "bare", distances=None)
    refused(de3, tmp_path, "has no distances to prototypes", name, bare)


@pytest.mark.parametrize("name", ["lambda", "alpha", "correctness"])
def test_rows_without_labels(de3, toy_trace, trained_model, tmp_path, name):
    blind = changed(toy_trace, tmp_path, "blind", labels=None)
    refused(de3, tmp_path, "labels", name, blind)
    texts = tmp_path / "texts.csv"
    texts.write_text("text\ngood film\nbad film\n", encoding="utf-8")
    refused(de3, tmp_path, "labels", name, trained_model, "--data", texts)


def test_homogeneity_needs_no_labels(de3, toy_trace, tmp_path):
    blind = changed(toy_trace, tmp_path, "blind", labels=None)
    assert de3("analyze", "homogeneity", blind, "--out", tmp_path / "out").code == 0
    read(tmp_path / "out")


@pytest.mark.parametrize("name", ["lambda", "alpha", "correctness"])
def test_one_class_in_the_sample(de3, toy_trace, tmp_path, name):
    single = changed(toy_trace, tmp_path, "single", labels=np.zeros(120, dtype=np.int64))
    refused(de3, tmp_path, "are of one class", name, single)


@pytest.mark.parametrize("name", ["correctness", "homogeneity"])
@pytest.mark.parametrize("layer", ["4", "9"])  # the final exit, and none at all
def test_a_layer_that_does_not_exist(de3, toy_trace, tmp_path, name, layer):
    words = f"has no exit before the last one at layer {layer}. There are: 1, 2, 3."
    refused(de3, tmp_path, words, name, toy_trace, "--layer", "2", "--layer", layer)


@pytest.mark.parametrize("name", ["correctness", "homogeneity"])
def test_too_few_rows(de3, trained_model, tmp_path, name):
    few = write_csv(tmp_path / "few.csv", toy_rows(8, seed=5))
    refused(de3, tmp_path, "needs at least 10 rows", name, trained_model, "--data", few)


def test_settings_of_other_analyses_are_refused(de3, toy_trace, tmp_path):
    refused(de3, tmp_path, "`lambda` does not take --tau", "lambda", toy_trace, "--tau", "0.2")
    words = "`homogeneity` does not take --speed"
    refused(de3, tmp_path, words, "homogeneity", toy_trace, "--speed", "2")


def test_numbers_that_make_no_sense(de3, toy_trace, tmp_path):
    refused(de3, tmp_path, "out of reach", "lambda", toy_trace, "--speed", "5")
    refused(de3, tmp_path, "finite and >= 0", "lambda", toy_trace, "--lambda", "-1")
    refused(de3, tmp_path, "lies in 0 to 1", "correctness", toy_trace, "--tau", "2")
    words = "takes one --lambda, got 2: 1, 2"
    refused(de3, tmp_path, words, "correctness", toy_trace, "--lambda", "1", "--lambda", "2")


def test_models_of_one_alpha(de3, toy_trace, tmp_path):
    twin = shutil.copy(toy_trace, tmp_path / "twin.trace")
    words = "all 2 given here have alpha 0.1"
    refused(de3, tmp_path, words, "alpha", toy_trace, twin)
    refused(de3, tmp_path, "its label says 0.5", "alpha", toy_trace, f"0.5={twin}")
    old = changed(toy_trace, tmp_path, "old", info={"method": "de3"})
    refused(de3, tmp_path, "does not say which alpha", "alpha", toy_trace, old)
