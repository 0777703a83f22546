"""`de3 analyze` on a tiny trained model, and what people get wrong with it."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.fixtures_trained import write_csv

from de3lab.analysis import ANALYSES
from de3lab.cli.analyze import NAME_HELP

FILES = ["figure.png", "figure.svg", "result.json", "table.md", "table.tex"]
FAILED, USAGE = 1, 2


@pytest.fixture
def trace(de3, trained_model, toy_data, tmp_path):
    """The trace of the model on the test rows."""
    path = tmp_path / "test.trace"
    assert de3("trace", trained_model, "--data", toy_data.test, "--out", path, "--quiet").code == 0
    return path


def test_help(de3):
    said = de3("analyze", "--help")
    text = " ".join(said.out.replace("│", " ").split())
    assert (said.code, said.err) == (0, "")
    assert "Example: de3 analyze exit-layers" in text
    for name in ("--speed", "--lambda", "--tau", "--row ", "--rows", "--seed", "LABEL=PATH"):
        assert name in text


def test_help_names_every_analysis():
    assert {*NAME_HELP.rstrip(".").replace(" or ", ", ").split(", ")} >= {*ANALYSES}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("strategies", ["--speed", "1.5", "--speed", "2", "--lambda", "1", "--lambda", "2"]),
        ("indicator", ["--metric", "f1", "--seed", "3", "--speed", "2"]),
        ("exit-layers", ["--tau", "0.3", "--family", "entropy"]),
    ],
)
def test_on_a_model(de3, trained_model, toy_data, tmp_path, name, more):
    out = tmp_path / "out"
    said = de3("analyze", name, trained_model, "--data", toy_data.test, "--out", out, *more,
               "--limit", "60", "--json", "--quiet")  # fmt: skip
    assert said.code == 0, said.err
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert said.json == json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert (said.json["analysis"], said.json["numbers"]["rows"]) == (name, 60)
    assert said.json["command"].startswith(f"de3 analyze {name} ")
    (subject,) = said.json["subjects"]
    assert (subject["label"], subject["data"]["name"]) == ("de3", "test.csv")


@pytest.mark.parametrize("name", ["components", "dar-forms"])
def test_a_model_beside_a_trace(de3, trained_model, toy_data, trace, tmp_path, name):
    out = tmp_path / "out"
    said = de3("analyze", name, f"w/o PN={trace}", f"whole={trained_model}", "--data",
               toy_data.test, "--out", out, "--speed", "1.5")  # fmt: skip
    assert said.code == 0, said.err
    assert "w/o PN - whole" in said.out
    assert "wrote " in said.out
    document = json.loads((out / "result.json").read_text(encoding="utf-8"))
    (pair,) = document["numbers"]["differences"]
    # The same model twice; whether rows ran alone or together changes last bits at most.
    assert abs(pair["at"]["1.5"]["mean"]) < 0.02


def test_seeds_from_traces_alone(de3, trace, tmp_path):
    shutil.copy(trace, tmp_path / "again.trace")
    said = de3("analyze", "indicator", trace, tmp_path / "again.trace", "--out", tmp_path / "out",
               "--json")  # fmt: skip
    assert said.code == 0, said.err
    numbers = said.json["numbers"]
    assert {line["runs"] for line in numbers["lines"]} == {2}
    assert numbers["lines"][0]["at"]["2"]["sd"] == 0.0


MISTAKES = {
    "unknown analysis": (["indicater", "{trace}"], USAGE, 'Did you mean "indicator"?'),
    "an option it has no use for": (
        ["indicator", "{trace}", "--tau", "0.2"],
        USAGE,
        "`indicator` does not take --tau. It takes: --lambda, --speed, --metric, --seed.",
    ),
    "options of another": (
        ["strategies", "{trace}", "--row", "3"],
        USAGE,
        "`strategies` does not take --row. It takes: --lambda, --speed, --metric.",
    ),
    "a model without rows": (["indicator", "{model}"], USAGE, "--data FILE"),
    "no such trace": (["indicator", "gone.trace"], FAILED, "There is no trace at gone.trace"),
    "a file that is no trace": (["indicator", "{rows}"], FAILED, "not a trace"),
    "half a label": (["indicator", "label="], USAGE, 'PATH or LABEL=PATH, got "label="'),
    "one kind where two are compared": (
        ["components", "{trace}"],
        USAGE,
        "`components` takes 2 or more kinds of models, got 1: de3.",
    ),
    "two kinds where one is": (
        ["indicator", "a={trace}", "b={trace}"],
        USAGE,
        "takes 1 kind of models, got 2: a, b.",
    ),
    "the same run twice": (["indicator", "{trace}", "{trace}"], USAGE, "is given twice as de3"),
    "two runs where one is looked at": (
        ["exit-layers", "a={trace}", "a=other.trace"],
        USAGE,
        "looks at one run of a, got 2",
    ),
    "a negative lambda": (["indicator", "{trace}", "--lambda", "-1"], USAGE, "finite and >= 0"),
    "two lambdas where one is held": (
        ["components", "a={trace}", "b={trace}", "--lambda", "1", "--lambda", "2"],
        USAGE,
        "takes one --lambda, got 2",
    ),
    "a speed out of reach": (["strategies", "{trace}", "--speed", "40"], USAGE, "out of reach"),
    "an unknown metric": (["strategies", "{trace}", "--metric", "f2"], USAGE, 'metric "f2"'),
    "a family without a threshold": (
        ["exit-layers", "{trace}", "--family", "patience"],
        USAGE,
        "`patience` has none",
    ),
    "a row below 1": (["sample", "{trace}", "--row", "0"], USAGE, "--row"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(de3, trained_model, toy_data, trace, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    if "other.trace" in str(MISTAKES[name][0]):
        shutil.copy(trace, "other.trace")
    words, code, expected = MISTAKES[name]
    places = {"trace": trace, "model": trained_model, "rows": toy_data.test}
    given = [word.format(**places) for word in words]
    said = de3("analyze", *given, "--out", tmp_path / "out", "--json")
    assert (said.code, said.out) == (code, ""), said.err
    assert expected in " ".join(said.err.split())
    assert not (tmp_path / "out").exists()


def test_rows_without_labels_or_of_one_class(de3, trained_model, tmp_path):
    (tmp_path / "bare.csv").write_text("text\na good film\na dull bore\n")
    one = write_csv(tmp_path / "one.csv", [("a good film", "pos"), ("a great joy", "pos")])
    for data, words in (
        (tmp_path / "bare.csv", "rows without labels"),
        (one, "of one class (pos)"),
    ):
        for verb in ("strategies", "indicator", "exit-layers"):
            said = de3("analyze", verb, trained_model, "--data", data, "--out", tmp_path / "out")
            assert (said.code, said.out) == (USAGE, "")
            assert words in " ".join(said.err.split())


def test_traces_of_different_data(de3, trained_model, toy_data, trace, tmp_path):
    other = tmp_path / "calibration.trace"
    de3("trace", trained_model, "--data", toy_data.calibration, "--out", other)
    said = de3("analyze", "components", f"a={trace}", f"b={other}", "--out", tmp_path / "out")
    assert (said.code, said.out) == (FAILED, "")
    assert "are about different data" in " ".join(said.err.split())


def test_a_trace_without_distances(de3, trace, tmp_path):
    from dataclasses import replace

    from de3bert.exits import Trace

    plain = tmp_path / "plain.trace"
    replace(Trace.load(trace), distances=None).save(plain)
    said = de3("analyze", "indicator", plain, "--out", tmp_path / "out")
    assert (said.code, said.out) == (USAGE, "")
    assert "has no distances to prototypes" in " ".join(said.err.split())
    assert de3("analyze", "strategies", plain, "--out", tmp_path / "out").code == 0


def test_a_place_that_cannot_be_written(de3, trace, tmp_path):
    (tmp_path / "taken").write_text("")
    said = de3("analyze", "exit-layers", trace, "--out", tmp_path / "taken")
    assert said.code == FAILED
    assert "there is a file where a folder is needed" in " ".join(said.err.split())
