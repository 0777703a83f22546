"""The verbs with models of words."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def model(sentee_model, tmp_path):
    return shutil.copytree(sentee_model, tmp_path / "model")


def test_train_calibrate_evaluate_predict(de3, tiny_backbone, word_data, tmp_path):
    out = tmp_path / "ner"
    done = de3(
        "train", "--data", word_data.train, "--task", "words", "--method", "sentee",
        "--backbone", tiny_backbone, "--out", out, "--set", "train.epochs=1",
        "--set", "train.learning_rate=3e-3", "--set", "data.max_length=32",
        "--set", "data.metric=span_f1", "--set", f"data.test='{word_data.test}'",
        "--json", "--quiet",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert set(done.json["exit_accuracy"]) == {"1", "2", "3", "4"}
    assert {"accuracy", "span_f1"} <= set(done.json["test"]["scores"])
    point = de3(
        "calibrate", out, "--data", word_data.calibration, "--target", "layers=1.5",
        "--name", "fast", "--json", "--quiet",
    )  # fmt: skip
    assert point.code == 0, point.err
    assert point.json["measured"]["metric"] == "span_f1"
    found = de3("evaluate", out, "--data", word_data.calibration, "--point", "fast", "--json")
    assert found.code == 0, found.err
    assert found.json["layer_speedup"] == pytest.approx(point.json["measured"]["layer_speedup"])
    lines = de3("predict", out, "-", "--point", "fast", stdin="the good film\na plot\n").lines
    assert [row["words"] for row in lines] == [["the", "good", "film"], ["a", "plot"]]
    assert all(len(row["tags"]) == len(row["words"]) for row in lines)


def test_policies_of_words_on_the_command_line(de3, model, word_data):
    said = de3("evaluate", model, "--data", word_data.test, "--policy", "entropy < 0.3 window 5")
    assert said.code == 0, said.err
    assert "window 5" in said.out
    rows = de3("predict", model, word_data.test, "--policy", "entropy < 0.3 mean", "--json").json
    assert len(rows) == 60
    assert rows[0]["input_tags"] is not None


def test_inspecting_a_model_of_words(de3, model):
    said = de3("inspect", model, "--json")
    assert said.code == 0, said.err
    assert said.json["method"] == "sentee"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "{m}", "--out", "{m}-bundle"], "Models of words run with torch"),
        (["explain", "{m}", "a film"], "is for classifiers of texts"),
        (["calibrate", "{m}", "--target", "layers=2", "--name", "x"], "give --data FILE"),
        (["calibrate", "{m}", "--trace", "t", "--target", "full", "--name", "x"], "no trace files"),
        (["evaluate", "{m}", "--data", "none.jsonl"], "There is no file none.jsonl"),
        (["evaluate", "{m}", "--data", "x", "--text-pair", "b"], "leave out --text-pair"),
        (["evaluate", "{m}", "--data", "{d}", "--policy", "entropy < 0.1 window 4"], "odd number"),
        (["evaluate", "{m}", "--data", "{d}", "--metric", "f1"], "metric of words"),
    ],
)
def test_mistakes_are_refused_with_a_message(de3, model, word_data, arguments, message):
    said = de3(*(part.format(m=model, d=word_data.test) for part in arguments))
    assert said.code == 2
    assert message in said.err
