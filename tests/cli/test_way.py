"""The whole way on the command line: train, trace, curve, calibrate, evaluate, predict, explain."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.fixtures_trained import toy_rows, write_csv
from tests.warm import python

VERBS = [
    "demo", "train", "search", "trace", "curve", "calibrate", "evaluate", "predict", "explain",
    "inspect", "export", "profile", "place-exits", "bench", "adapt",
]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(de3, verb):
    said = de3(verb, "--help")
    assert (said.code, said.err) == (0, "")
    assert f"Example: {'echo' if verb == 'predict' else 'de3 ' + verb}" in " ".join(
        said.out.replace("│", " ").split()
    )
    assert "--json" in said.out


def test_help_and_version(de3):
    assert all(verb in de3("--help").out for verb in VERBS)
    assert de3("--version").out.startswith("de3bert 0.")


@pytest.fixture
def small(tmp_path):
    return write_csv(tmp_path / "small.csv", toy_rows(64, 5))


def test_from_rows_to_answers(de3, tiny_backbone, small, toy_data, tmp_path):
    model = tmp_path / "out" / "m"
    trained = de3("train", "--data", small, "--backbone", tiny_backbone, "--out", model,
                  "--set", "train.epochs=2", "--set", "train.learning_rate=3e-3",
                  "--set", "pooling=mean", "--seed", "3", "--json")  # fmt: skip
    assert trained.code == 0, trained.err
    assert set(trained.json["exit_accuracy"]) == {"1", "2", "3", "4"}
    assert {"folder", "seconds", "steps", "notes"} <= set(trained.json)
    trace = tmp_path / "dev.trace"
    traced = de3("trace", model, "--data", toy_data.calibration, "--out", trace, "--json")
    assert traced.json["rows"] == 120
    assert traced.json["labelled"] is True
    point = de3("calibrate", model, "--trace", trace, "--target", "layers=1.2", "--name", "fast",
                "--json")  # fmt: skip
    assert point.json["measured"]["layer_speedup"] >= 1.2
    found = de3("evaluate", model, "--data", toy_data.test, "--point", "fast", "--json")
    assert found.json["point"] == "fast"
    answer = de3("predict", model, "--point", "fast", "--json", stdin="a great joy\n")
    assert answer.json[0]["text"] == "a great joy"
    assert [path.name for path in model.parent.iterdir()] == ["m"]


def test_search(de3, tiny_backbone, small, tmp_path):
    (tmp_path / "r.toml").write_text(
        f'backbone = "{tiny_backbone}"\n[data]\ntrain = "{small}"\n[train]\nepochs = 1\n'
        '[search]\n"train.learning_rate" = [1e-3, 3e-3]\n'
    )
    said = de3("search", tmp_path / "r.toml", "--out", tmp_path / "s", "--json")
    assert said.code == 0, said.err
    assert [trial["settings"] for trial in said.json["trials"]] == [
        {"train.learning_rate": 1e-3},
        {"train.learning_rate": 3e-3},
    ]
    assert Path(said.json["best"], "config.json").exists()
    table = de3("search", tmp_path / "r.toml", "--out", tmp_path / "s")
    assert "mean exit accuracy" in table.out


def test_curve(de3, trained_model, toy_data, tmp_path):
    trace = tmp_path / "t.trace"
    assert de3("trace", trained_model, "--data", toy_data.test, "--out", trace).code == 0
    for name in ("c.png", "c.svg"):
        said = de3("curve", trace, "--plot", tmp_path / name, "--json")
        assert (said.code, said.json["metric"]) == (0, "accuracy")
        assert (tmp_path / name).stat().st_size > 5000
        assert f"wrote {tmp_path / name}" in said.err.replace("\n", "")
    labels = [curve["label"] for curve in said.json["curves"]]
    assert labels == ["edr(lambda=1.0)", "entropy", "fixed depth", "oracle"]
    for curve in said.json["curves"]:
        assert len(curve["layer_speedup"]) == len(curve["score"]) > 0
    chosen = de3("curve", trace, "--family", "patience", "--family", "entropy x 2", "--metric",
                 "f1", "--json")  # fmt: skip
    assert [c["label"] for c in chosen.json["curves"]][:2] == ["patience", "entropy x 2"]
    table = de3("curve", trace).out
    assert "entropy" in table
    assert "1.5x" in table


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("layers=2.0", ["--wide"]),
        ("layers=2.0", ["--paper-grid"]),
        ("drop=2%", ["--family", "entropy"]),
        ("accuracy=0.85", ["--metric", "f1"]),
        ("full", ["--default"]),
    ],
)
def test_calibrate(de3, model_copy, toy_data, target, more):
    said = de3("calibrate", model_copy, "--data", toy_data.calibration, "--target", target,
               "--name", "p", *more, "--json")  # fmt: skip
    assert said.code == 0, said.err
    assert set(said.json) == {"version", "name", "policy", "target", "measured"}
    assert {"rows", "metric", "score", "score_interval", "full_score", "layers_mean",
            "layer_speedup", "exit_histogram"} <= set(said.json["measured"])  # fmt: skip
    config = json.loads((model_copy / "config.json").read_text())
    assert config["operating_points"]["p"] == said.json
    assert config["default_point"] == ("p" if "--default" in more else None)
    if "entropy" in more:
        assert said.json["policy"].startswith("entropy < ")


def test_evaluate(de3, trained_model, toy_data):
    said = de3("evaluate", trained_model, "--data", toy_data.test, "--policy", "entropy < 0.5",
               "--batch-size", "7", "--json")  # fmt: skip
    found = said.json
    assert {"rows", "metric", "score", "score_interval", "layers_mean", "layer_speedup",
            "exit_histogram", "policy", "point", "truncated"} <= set(found)  # fmt: skip
    assert (found["rows"], found["metric"], found["point"]) == (120, "accuracy", None)
    assert found["policy"] == "entropy < 0.5"
    assert sum(found["exit_histogram"].values()) == 120
    mean = sum(int(layer) * rows for layer, rows in found["exit_histogram"].items()) / 120
    assert found["layers_mean"] == pytest.approx(mean)
    table = de3("evaluate", trained_model, "--data", toy_data.test)
    assert "layer speed-up" in table.out
    assert "full" in table.out


def test_evaluate_says_what_was_wanted(de3, model_copy, toy_data):
    """The point's target beside what it gives here, and a line where the two differ."""
    made = de3("calibrate", model_copy, "--data", toy_data.calibration, "--target", "layers=1.5",
               "--name", "p", "--json")  # fmt: skip
    assert made.code == 0, made.err
    said = de3("evaluate", model_copy, "--data", toy_data.test, "--point", "p", "--json")
    found = said.json
    assert (found["target"], found["wanted_layer_speedup"]) == ("layers=1.5", 1.5)
    low, high = found["layer_speedup_interval"]
    assert low < found["layer_speedup"] < high
    assert found["off_target"] is not (low <= 1.5 <= high)
    table = de3("evaluate", model_copy, "--data", toy_data.test, "--point", "p").out
    assert f"{found['layer_speedup']:.2f} (95 % interval {low:.2f} to {high:.2f})" in table
    assert "1.50 (layers=1.5)" in table
    config = json.loads((model_copy / "config.json").read_text())
    config["operating_points"]["p"]["target"] = "layers=3.9"
    (model_copy / "config.json").write_text(json.dumps(config))
    off = de3("evaluate", model_copy, "--data", toy_data.test, "--point", "p", "--json")
    assert off.json["off_target"] is True
    assert "was calibrated for a layer speed-up of 3.90 and has" in " ".join(off.err.split())
    plain = de3("evaluate", model_copy, "--data", toy_data.test, "--policy", "full", "--json")
    assert (plain.json["target"], plain.json["off_target"]) == (None, False)
    assert "calibrated for" not in plain.err


INPUTS = {
    "lines.txt": "a good film\na dull bore\n",
    "rows.csv": 'id,text,label\n7,"a good film",pos\n8,a dull bore,neg\n',
    "rows.tsv": "id\ttext\tlabel\n7\ta good film\tpos\n8\ta dull bore\tneg\n",
    "rows.jsonl": '{"id": 7, "text": "a good film", "label": "pos", "score": NaN}\n'
    '{"id": 8, "text": "a dull bore", "label": "neg", "score": 1.5}\n',
}


@pytest.mark.parametrize("name", [*INPUTS, "-", "- (JSON)"])
def test_predict_takes_lines_and_rows_and_echoes_their_columns(de3, trained_model, tmp_path, name):
    content = INPUTS.get(name, INPUTS["rows.jsonl" if "JSON" in name else "lines.txt"])
    (tmp_path / name).write_text(content)
    source = "-" if name.startswith("-") else tmp_path / name
    said = de3("predict", trained_model, source, "--policy", "layer(2)", stdin=content)
    assert (said.code, len(said.lines)) == (0, 2), said.err
    for answer, text, label in zip(
        said.lines, ("a good film", "a dull bore"), ("pos", "neg"), strict=True
    ):
        assert (answer["text"], answer["label"]) == (text, label)
        assert (answer["exit_layer"], answer["layers"]) == (2, 4)
        assert 0.5 <= answer["score"] <= 1
    if "id" in content:
        assert [str(answer["id"]) for answer in said.lines] == ["7", "8"]
        assert [answer["input_label"] for answer in said.lines] == ["pos", "neg"]
    if "NaN" in content:
        assert [answer["input_score"] for answer in said.lines] == [None, 1.5]
    whole = de3("predict", trained_model, source, "--policy", "layer(2)", "--json", stdin=content)
    assert whole.json == said.lines


def test_pairs(de3, trained_model, model_copy, tmp_path):
    (tmp_path / "p.csv").write_text("first,second\na good film,the best plot\n")
    columns = ["--text", "first", "--text-pair", "second"]
    said = de3("predict", trained_model, tmp_path / "p.csv", *columns)
    assert (said.code, said.out) == (2, ""), said.err
    assert "pair" in said.err
    config = json.loads((model_copy / "config.json").read_text())
    (model_copy / "config.json").write_text(json.dumps({**config, "text_pairs": True}))
    said = de3("predict", model_copy, tmp_path / "p.csv", *columns)
    assert said.lines[0]["label"] == "pos", said.err
    explained = de3("explain", model_copy, "a good film", "the best plot")
    assert explained.out.startswith("a good film | the best plot\n")
    said = de3("predict", model_copy, stdin="a good film\n")
    assert (said.code, said.out, "pair" in said.err) == (2, "", True)


def test_long_texts_are_cut_and_said(de3, trained_model, tmp_path):
    long = " ".join(["good"] * 60)
    rows = write_csv(tmp_path / "long.csv", [(long, "pos"), ("bad", "neg")])
    for verb in (
        ["predict", trained_model, rows],
        ["evaluate", trained_model, "--data", rows],
        ["trace", trained_model, "--data", rows, "--out", tmp_path / "l.trace"],
    ):
        said = de3(*verb, "--quiet")
        assert said.code == 0
        assert "1 of 2 texts were truncated to 24 tokens" in said.err.replace("\n", " ")


def test_explain(de3, trained_model):
    said = de3("explain", trained_model, "the best film but dull", "--policy", "entropy < 0.3")
    assert (said.code, said.err.count("error")) == (0, 0)
    assert "policy: entropy < 0.3" in said.out
    assert said.out.count("<- leaves here") == 1
    found = de3("explain", trained_model, "the best film but dull", "--policy", "entropy < 0.3",
                "--json").json  # fmt: skip
    assert set(found["prediction"]) == {"label", "score", "exit_layer", "layers"}
    leaving = [row["layer"] for row in found["layers"] if row["leaves"]]
    assert leaving == [found["prediction"]["exit_layer"]]


def test_inspect(de3, model_copy, toy_data):
    assert "no operating points yet" in de3("inspect", model_copy).out
    de3("calibrate", model_copy, "--data", toy_data.calibration, "--target", "layers=2.0",
        "--name", "2x")  # fmt: skip
    assert "2x" in de3("inspect", model_copy).out
    found = de3("inspect", model_copy, "--json").json
    assert (found["family"], found["layers"], list(found["points"])) == ("bert", 4, ["2x"])


def run(*arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [*python(), "-m", "de3bert.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


def test_a_real_process_keeps_results_and_notes_apart(trained_model, toy_data):
    done = run("evaluate", trained_model, "--data", toy_data.test, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"] == 120
    assert done.stderr == ""


def test_a_reader_that_goes_away_is_no_error(trained_model, tmp_path):
    rows = tmp_path / "many.txt"
    rows.write_text("a good film\n" * 4000)
    command = (
        f"{shlex.join(python())} -m de3bert.cli.main predict {trained_model} {rows} | head -n 1"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["label"] == "pos"
    assert done.stderr == ""


def test_columns_are_written_as_they_were_read(de3, trained_model, tmp_path):
    path = tmp_path / "wide.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["when", "text", "layers", "note"])
        writer.writerow(["2026-01-02", "a naïve joy 🙂", "99", 'says "no", twice'])
    (answer,) = de3("predict", trained_model, path).lines
    assert (answer["when"], answer["note"]) == ("2026-01-02", 'says "no", twice')
    assert (answer["text"], answer["layers"], answer["input_layers"]) == ("a naïve joy 🙂", 4, "99")
