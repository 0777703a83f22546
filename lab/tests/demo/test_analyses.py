"""Every analysis of the paper on the demo's model, as a user would ask for it."""

from __future__ import annotations

import csv
import json
import math
import shutil

import pytest
from tests.demo.quick import needs_packages

from de3lab.analysis import ANALYSES

FILES = ["figure.png", "figure.svg", "result.json", "table.md", "table.tex"]
ROWS = 60
# What is said beyond the name: models, traces, rows, and what makes it small.
ASKED = {
    "sample": ["{model}", "--data", "{rows}"],
    "strategies": ["{trace}"],
    "indicator": ["{model}", "--data", "{rows}"],
    "components": ["de3={trace}", "w/o PN={trace}", "w/o PN w/o DAR={trace}"],
    "exit-layers": ["{trace}"],
    "speed": ["{model}", "--data", "{rows}", "--rows", "3", "--rounds", "1"],
    "lambda": ["{trace}"],
    "alpha": ["0.1={model}", "0.01={other}", "--data", "{rows}"],
    "correctness": ["{trace}"],
    "costs": ["{model}", "--length", "32"],
    "space": ["{model}", "--data", "{rows}", "--layer", "2", "--perplexity", "5"],
    "homogeneity": ["{trace}"],
    "dar-forms": ["center={trace}", "alienation={trace}", "combined={trace}"],
    "shift": ["before={trace}", "after={trace}"],
}


def test_no_analysis_is_left_out():
    assert set(ASKED) == set(ANALYSES)


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """A few test rows of the demo, of both classes, as a file."""
    from de3bert.demo.run import Settings, _read

    _, test = _read(Settings.quick())
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        step = len(test) // ROWS
        writer.writerows(list(zip(test.texts, test.labels, strict=True))[::step])
    return path


@pytest.fixture(scope="session")
def other(demo, tmp_path_factory):
    """The demo's model as if it had been trained with another alpha."""
    copy = shutil.copytree(demo.out / "model", tmp_path_factory.mktemp("other") / "model")
    path = copy / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["method_options"]["alpha"] = 0.01
    path.write_text(json.dumps(config), encoding="utf-8")
    return copy


TOO_FEW = {"alpha"}  # two models are two points, which are no figure


@needs_packages
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(ASKED))
def test_on_the_demo_model(de3, demo, other, rows, tmp_path, name):
    places = {
        "model": demo.out / "model",
        "other": other,
        "trace": demo.out / "test.trace",
        "rows": rows,
    }
    out = tmp_path / "out"
    asked = [each.format(**places) for each in ASKED[name]]
    said = de3("analyze", name, *asked, "--out", out, "--json", "--quiet")
    assert said.code == 0, said.err
    drawn = name not in TOO_FEW
    files = [file for file in FILES if drawn or not file.startswith("figure")]
    assert sorted(path.name for path in out.iterdir()) == files
    assert said.json == json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert said.json["analysis"] == name
    assert not drawn or (out / "figure.png").stat().st_size > 5000
    assert _numbers(said.json["numbers"]) > 5
    assert (out / "table.md").read_text(encoding="utf-8").count("|") > 10


def _numbers(value) -> int:
    """How many finite numbers a document has."""
    if isinstance(value, dict):
        return sum(map(_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(_numbers, value))
    return int(isinstance(value, int | float) and math.isfinite(value))
