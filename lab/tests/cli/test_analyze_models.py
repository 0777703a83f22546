"""The analyses that run a model or show one row of it, as commands on the tiny trained model."""

from __future__ import annotations

import json

import pytest

FILES = ["figure.png", "figure.svg", "result.json", "table.md", "table.tex"]
USAGE = 2


def written(out):
    assert sorted(path.name for path in out.iterdir()) == FILES
    return json.loads((out / "result.json").read_text(encoding="utf-8"))["numbers"]


def test_sample(de3, trained_model, toy_data, tmp_path):
    out, trace = tmp_path / "out", tmp_path / "test.trace"
    said = de3("analyze", "sample", trained_model, "--data", toy_data.test, "--row", "3",
               "--lambda", "2", "--out", out, "--quiet")  # fmt: skip
    assert said.code == 0, said.err
    alone = written(out)
    assert (alone["row"], alone["searched"], alone["lambda"]) == (3, None, 2.0)
    assert [each["layer"] for each in alone["layers"]] == [1, 2, 3, 4]
    assert "One row, layer by layer" in said.out
    de3("trace", trained_model, "--data", toy_data.test, "--out", trace, "--quiet")
    said = de3("analyze", "sample", trace, "--data", toy_data.test, "--row", "3", "--lambda", "2",
               "--out", out, "--json")  # fmt: skip
    assert said.code == 0, said.err
    assert said.json["numbers"]["text"] == alone["text"]
    for mine, other in zip(said.json["numbers"]["layers"], alone["layers"], strict=True):
        assert mine["entropy"] == pytest.approx(other["entropy"], abs=1e-4)


def test_sample_searches_for_its_row(de3, trained_model, toy_data, tmp_path):
    said = de3("analyze", "sample", trained_model, "--data", toy_data.test, "--out",
               tmp_path / "out", "--json", "--quiet")  # fmt: skip
    assert said.code == 0, said.err
    found = said.json["numbers"]
    assert found["searched"]
    right = [each["right"] for each in found["layers"]]
    assert False in right[: right.index(True, right.index(False))]  # wrong, and right later


def test_speed(de3, trained_model, toy_data, tmp_path):
    out = tmp_path / "out"
    said = de3("analyze", "speed", trained_model, "--data", toy_data.test, "--out", out, "--rows",
               "5", "--rounds", "1", "--threads", "1", "--quiet")  # fmt: skip
    assert said.code == 0, said.err
    found = written(out)
    assert (found["rows"], found["rounds"]) == (5, 1)
    for words in ("full depth, no tests", "Pearson correlations", "1.49x"):
        assert words in said.out


def test_costs_need_no_rows(de3, trained_model, model_copy, tmp_path):
    out = tmp_path / "out"
    said = de3("analyze", "costs", f"a={trained_model}", f"b={model_copy}", "--length", "16",
               "--out", out)  # fmt: skip
    assert said.code == 0, said.err
    found = written(out)
    assert [kind["label"] for kind in found["kinds"]] == ["a", "b"]
    assert found["kinds"][0]["parameters"] == found["kinds"][1]["parameters"]
    assert "1,813,512,192" in said.out


def test_space(de3, trained_model, model_copy, toy_data, tmp_path):
    out = tmp_path / "out"
    said = de3("analyze", "space", f"one={trained_model}", f"two={model_copy}", "--data",
               toy_data.test, "--layer", "1", "--layer", "3", "--rows", "30", "--perplexity", "4",
               "--seed", "1", "--out", out, "--quiet")  # fmt: skip
    assert said.code == 0, said.err
    found = written(out)
    assert (found["perplexity"], found["layers"], len(found["panels"])) == (4.0, [1, 3], 4)
    first, second = found["panels"][0], found["panels"][2]
    assert first["points"] == second["points"]  # the same model twice


MISTAKES = {
    "a trace where the model runs": (
        ["speed", "{trace}"],
        "`speed` runs the model, and",
    ),
    "a model without rows": (["space", "{model}"], "--data FILE"),
    "a layer that does not exist": (
        ["space", "{model}", "--data", "{rows}", "--layer", "7"],
        "no exit before the last at layer 7. There are: 1, 2, 3.",
    ),
    "too few rows for t-SNE": (
        ["space", "{model}", "--data", "{rows}", "--rows", "60"],
        "t-SNE of 60 rows with perplexity 30 is not to be trusted: it needs more than 90 rows.",
    ),
    "a row beyond the last": (["sample", "{trace}", "--row", "121"], "has rows 1 to 120"),
    "other data than the trace's": (
        ["sample", "{trace}", "--data", "{others}", "--row", "1"],
        "was not made from",
    ),
    "a text that is too long": (
        ["costs", "{model}", "--length", "500"],
        "takes texts of 1 to 24 tokens, got --length 500.",
    ),
    "few thresholds": (
        ["speed", "{model}", "--data", "{rows}", "--tau", "0.5"],
        "at least 4 different thresholds",
    ),
    "an option of another": (
        ["costs", "{model}", "--tau", "0.5"],
        "`costs` does not take --tau. It takes: --length.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(de3, trained_model, toy_data, tmp_path, name):
    trace = tmp_path / "test.trace"
    words, expected = MISTAKES[name]
    if "{trace}" in words:
        de3("trace", trained_model, "--data", toy_data.test, "--out", trace, "--quiet")
    places = {"trace": trace, "model": trained_model, "rows": toy_data.test,
              "others": toy_data.calibration}  # fmt: skip
    given = [word.format(**places) for word in words]
    said = de3("analyze", *given, "--out", tmp_path / "out", "--json", "--quiet")
    assert (said.code, said.out) == (USAGE, ""), said.err
    assert expected in " ".join(said.err.split())
    assert not (tmp_path / "out").exists()
