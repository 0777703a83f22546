"""`de3 attach`, promises and controllers from the command line."""

from __future__ import annotations

import json

import pytest
from tests.fixtures_trained import toy_rows, write_csv
from tests.training.classifiers import saved, tiny_classifier


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, tiny_tokenizer):
    folder = tmp_path_factory.mktemp("checkpoint") / "tiny"
    return saved(tiny_classifier("bert"), tiny_tokenizer, folder)


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "".join(f"{text}\n" for text, _ in toy_rows(120, 6)))
    return path


def test_attach_then_calibrate_without_a_label_anywhere(de3, checkpoint, texts, tmp_path):
    out = tmp_path / "exits"
    said = de3("attach", checkpoint, "--data", texts, "--out", out, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["method"] == "full+attached"
    assert found["exits"]["rows"] == 108
    assert set(found["accuracy"]) == {"1", "2", "3"}
    said = de3("attach", checkpoint, "--data", texts, "--out", tmp_path / "shown")
    assert "agrees with the last layer (12 held-out rows)" in said.out
    said = de3("calibrate", out, "--data", texts, "--target", "agree=0.8", "--name", "a", "--json")
    assert json.loads(said.out)["measured"]["metric"] == "agreement", said.err
    said = de3("calibrate", out, "--unlabelled", texts, "--target", "layers=1.2", "--name", "b")
    assert said.code == 0, said.err
    assert "agreement" in said.out


def test_with_labels_and_layers(de3, checkpoint, tmp_path):
    rows = write_csv(tmp_path / "rows.csv", toy_rows(150, 6))
    out = tmp_path / "exits"
    said = de3("attach", checkpoint, "--data", rows, "--out", out, "--exit-layers", "1,2")
    assert said.code == 0, said.err
    assert "accuracy (15 held-out rows)" in said.out
    said = de3("attach", checkpoint, "--data", rows, "--out", out, "--no-labels", "--overwrite",
               "--calibration", rows, "--json")  # fmt: skip
    assert json.loads(said.out)["exits"]["labels"] == "answers", said.err


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--exit-layers", "1,x"], "--exit-layers takes whole numbers"),
        (["--max-length", "4000"], "reads 64 tokens at most"),
        (["--rows", "3"], "30"),
        (["--pooling", "max"], "max"),
        (["--text", "words"], "words"),
    ],
)
def test_requests_that_make_no_sense(de3, checkpoint, texts, tmp_path, more, reason):
    said = de3("attach", checkpoint, "--data", texts, "--out", tmp_path / "out", *more)
    assert said.code == 2, said.out
    assert reason in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


def test_promises_are_printed_stored_and_shown(de3, model_copy, tmp_path):
    rows = write_csv(tmp_path / "dev.csv", toy_rows(500, 9))
    asked = ("--target", "agree=0.6", "--confidence", "0.9", "--name", "safe")
    said = de3("calibrate", model_copy, "--data", rows, *asked)
    assert said.code == 0, said.err
    assert "with probability 0.9 over calibration rows (500 here" in said.out
    assert "what the promise costs" in said.out
    assert "with probability 0.9" in de3("inspect", model_copy).out
    assert "with probability 0.9" in (model_copy / "README.md").read_text()
    said = de3("calibrate", model_copy, "--data", rows, "--target", "agree=0.9999",
               "--confidence", "0.99", "--name", "x")  # fmt: skip
    assert said.code == 1
    assert "500 rows are too few for this promise" in said.err


@pytest.mark.parametrize(
    ("target", "more", "code", "reason"),
    [
        ("layers=2.0", ["--confidence", "0.9"], 2, "Nothing of `layers` can be promised"),
        ("agree=0.9", ["--confidence", "7"], 2, "confidence is a probability"),
        ("layers=1.2 keep", ["--family", "bandit"], 2, "chooses its thresholds itself"),
        ("layers=3.9 keep agree=0.999", [], 1, "cannot be kept"),
        ("drop=0.1", ["--data", "texts"], 2, "label"),
    ],
)
def test_points_that_cannot_be_had(de3, model_copy, texts, tmp_path, target, more, code, reason):
    rows = write_csv(tmp_path / "dev.csv", toy_rows(120, 9))
    before = (model_copy / "config.json").read_bytes()
    data = texts if "texts" in more else rows
    more = [] if "texts" in more else more
    said = de3("calibrate", model_copy, "--data", data, "--target", target, "--name", "x", *more)
    assert said.code == code, said.err
    assert reason in said.err
    assert (model_copy / "config.json").read_bytes() == before


def test_a_controller_goes_on_from_its_file(de3, model_copy, texts, tmp_path):
    rows = write_csv(tmp_path / "dev.csv", toy_rows(200, 9))
    said = de3("calibrate", model_copy, "--data", rows, "--target", "layers=1.5 keep agree=0.3",
               "--name", "kept")  # fmt: skip
    assert said.code == 0, said.err
    assert "/.../" in said.out
    state = tmp_path / "state.json"
    for seen in (120, 240):
        said = de3("predict", model_copy, texts, "--point", "kept", "--state", state)
        assert said.code == 0, said.err
        (found,) = json.loads(state.read_text()).values()
        assert found["seen"] == seen
    state.write_text("[1]")
    assert de3("predict", model_copy, texts, "--point", "kept", "--state", state).code == 1
