"""`de3 adapt` on the command line, and rules on shifted data after it."""

from __future__ import annotations

import csv
import json
import random
import sys

import pytest
from tests.fixtures_trained import toy_rows, write_csv

FAILED, USAGE = 1, 2


@pytest.fixture
def new(tmp_path):
    """Rows of another kind: longer texts."""
    pairs = zip(toy_rows(80, 21), toy_rows(80, 22), strict=True)
    return write_csv(tmp_path / "new.csv", [(f"{a} {b}", label) for (a, label), (b, _) in pairs])


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_of_how_far_prototypes_moved(de3, trained_model, new, tmp_path, monkeypatch):
    monkeypatch.setattr("de3bert.progress.EVERY", 0.0)  # elsewhere short jobs say nothing
    said = de3("adapt", trained_model, "--data", new, "--out", tmp_path / "m")
    assert said.code == 0, said.err
    lines = [line.split() for line in said.out.splitlines()]
    assert lines[0] == ["layer", "class", "rows", "nearest", "moved", "(cosine", "distance)"]
    shown = [line for line in lines if len(line) == 4 and line[1] in ("neg", "pos")]
    assert [(line[0], line[1]) for line in shown] == [
        (layer, label) for layer in "123" for label in ("neg", "pos")
    ]
    assert all(sum(int(line[2]) for line in shown if line[0] == layer) == 80 for layer in "123")
    assert f"model: {tmp_path / 'm'}   from 80 rows, no labels read" in said.out
    assert f"de3 calibrate {tmp_path / 'm'} --data FILE" in said.out
    assert "thresholds" not in said.out  # the model has no points
    assert "reading" in said.err
    quiet = de3("adapt", trained_model, "--data", new, "--out", tmp_path / "q", "--quiet")
    assert "reading" not in quiet.err


def test_the_same_as_json(de3, trained_model, new, tmp_path):
    said = de3("adapt", trained_model, "--data", new, "--out", tmp_path / "m", "--rows", "60",
               "--seed", "7", "--batch-size", "5", "--quiet", "--json")  # fmt: skip
    found = said.json
    assert {"folder", "rows", "truncated", "distance", "seed", "moved", "iterations", "unsettled",
            "unmeasured", "notes"} == set(found)  # fmt: skip
    assert (found["rows"], found["seed"], found["distance"]) == (60, 7, "cosine")
    assert found["moved"][0].keys() == {"layer", "label", "rows", "distance"}
    assert list(found["iterations"]) == ["1", "2", "3"]
    other = de3("adapt", trained_model, "--data", new, "--out", tmp_path / "e", "--distance",
                "euclidean", "--json").json  # fmt: skip
    assert other["distance"] == "euclidean"


def test_labels_in_the_file_make_no_difference(de3, trained_model, new, tmp_path):
    rows = read(new)
    labels = [row["label"] for row in rows]
    random.Random(1).shuffle(labels)
    strange = [f"mark {number}" for number in range(80)]
    said = []
    for number, given in enumerate(([row["label"] for row in rows], labels, strange)):
        place = tmp_path / str(number)
        place.mkdir()
        pairs = [(row["text"], label) for row, label in zip(rows, given, strict=True)]
        data = write_csv(place / "new.csv", pairs)
        answer = de3("adapt", trained_model, "--data", data, "--out", place / "m", "--json")
        assert answer.code == 0, answer.err
        weights = (place / "m" / "model.safetensors").read_bytes()
        said.append((weights, {**answer.json, "folder": ""}))
    assert said[0] == said[1] == said[2]


def test_points_are_not_claimed_any_more(de3, model_copy, toy_data, new, tmp_path):
    for name, more in (("2x", []), ("plain", ["--family", "entropy"])):
        done = de3("calibrate", model_copy, "--data", toy_data.calibration, "--target",
                   "layers=1.5", "--name", name, *more)  # fmt: skip
        assert done.code == 0, done.err
    out = tmp_path / "m"
    said = de3("adapt", model_copy, "--data", new, "--out", out)
    assert "keep their thresholds" in said.out
    assert "with the new prototypes: 2x\n" in said.out
    shown = de3("inspect", out)
    row = next(line.split() for line in shown.out.splitlines() if line.startswith("2x "))
    assert row[-4:] == ["-", "-", "-", "-"]
    kept = next(line.split() for line in shown.out.splitlines() if line.startswith("plain "))
    assert kept[-1] == "120"
    assert "-: not measured since the prototypes were adapted" in shown.out
    assert "means: adapted to 80 rows of new.csv" in shown.out
    answers = de3("predict", out, "--point", "2x", "--json", stdin="a great joy\na dull bore\n")
    assert [answer["label"] for answer in answers.json] == ["pos", "neg"]
    before = json.loads((model_copy / "config.json").read_text())["operating_points"]["2x"]
    after = json.loads((out / "config.json").read_text())["operating_points"]["2x"]
    assert (after["policy"], after["measured"]) == (before["policy"], {})
    again = de3("calibrate", out, "--data", toy_data.calibration, "--target", "layers=1.5",
                "--name", "2x")  # fmt: skip
    assert again.code == 0, again.err
    assert "not measured" not in de3("inspect", out).out


def test_mistakes(de3, trained_model, new, tmp_path):
    out = tmp_path / "m"

    def refused(words, *more, code=USAGE, model=trained_model, data=new, place=out):
        said = de3("adapt", model, "--data", data, "--out", place, *more)
        assert (said.code, said.out) == (code, "")
        assert words in " ".join(said.err.split())
        assert not out.exists()

    refused("is the model folder itself", place=trained_model)
    refused("not a model folder of de3bert", model=tmp_path / "nothing")
    refused("There is no file", data=tmp_path / "absent.csv")
    refused('no column "body"', "--text", "body")
    refused("gives 1 rows for 2 classes", "--rows", "1")
    refused("--rows", "--rows", "0")
    refused("--distance", "--distance", "manhattan")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "manifest.json").write_text("{}")
    refused("is a bundle", model=tmp_path / "bundle")


def test_a_missing_library_is_named_with_its_extra(de3, trained_model, new, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    said = de3("adapt", trained_model, "--data", new, "--out", tmp_path / "m")
    assert said.code == FAILED
    assert "needs sklearn. Install it with: pip install 'de3bert[adapt]'" in said.err
    assert not (tmp_path / "m").exists()


def test_help_shows_an_example(de3):
    said = de3("adapt", "--help")
    assert "Example: de3 adapt runs/mine" in " ".join(said.out.replace("│", " ").split())
    assert "adapt" in de3("--help").out
