"""`de3 bench` from the outside: what it prints, what it promises, what it refuses."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext

import pytest
import typer
from typer.testing import CliRunner

from de3bert.bench.report import ratio_table
from de3bert.cli import bench
from de3bert.cli.verbs import add_verb
from de3bert.errors import De3Error

DOCUMENT = {
    "schema", "benchmark", "command", "date", "machine", "load", "versions", "threads", "bundle",
    "data", "texts", "tokens", "truncated", "rounds", "seed", "reference", "answers_ok", "warnings",
    "contenders",
}  # fmt: skip
ROW = {
    "name", "ours", "precision", "latency_ms", "tokenising_ms", "batch_size", "texts_per_second",
    "same_answers", "answers_ok", "accuracy", "layers_mean", "layer_speedup", "efficiency",
    "efficiency_plain", "against",
}  # fmt: skip

app = typer.Typer()
app.callback()(lambda: None)  # with it, the verb keeps its name
add_verb(app, "bench", bench)


def run(*arguments):
    """Runs the verb; the error a user would be told of is raised."""
    found = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    if isinstance(found.exception, De3Error):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found


@pytest.fixture(autouse=True)
def one_torch_thread(monkeypatch):
    """Tiny tensors on busy cores: torch keeps the one thread that the tests give it."""
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)


@pytest.fixture
def short(toy_data):
    return ("--data", toy_data.test, "--texts", "12", "--rounds", "2")


def test_the_document(bundle, int8_bundle, short, material, monkeypatch):
    # Graphs that other tests have exported are used again: exporting takes most of the time.
    monkeypatch.setattr(
        "de3bert.bench.run.TemporaryDirectory", lambda prefix: nullcontext(material.folder)
    )
    said = run(
        bundle, *short, "--against", "hf,ort,ort-fused,layer-k", "--int8", int8_bundle, "--json"
    )
    document = json.loads(said.stdout)
    assert set(document) == DOCUMENT
    assert (document["texts"], document["rounds"], document["reference"]) == (12, 2, "hf")
    assert {"onnxruntime", "torch", "numpy"} <= set(document["versions"])
    assert document["tokens"]["min"] <= document["tokens"]["p50"] <= document["tokens"]["max"]
    rows = {row["name"]: row for row in document["contenders"]}
    assert list(rows) == ["hf", "ort", "ort-fused", "layer-2", "ours:full", "ours:half",
                          "ours-int8:full", "ours-int8:half"]  # fmt: skip
    for row in rows.values():
        assert set(row) >= ROW
        assert 0 < row["latency_ms"]["p50"] <= row["latency_ms"]["p95"]
        assert set(row["against"]) == {"hf", "ort", "ort-fused", "layer-2"} - {row["name"]}
        for ratio in (ratio for each in row["against"].values() for ratio in each.values()):
            assert ratio["low"] <= ratio["value"] * 1.0001
            assert ratio["value"] <= ratio["high"] * 1.0001
    check_answers(document, rows)


def check_answers(document, rows):
    assert document["answers_ok"] is True
    assert [rows[name]["answers_ok"] for name in ("hf", "ort", "ours:full")] == [True] * 3
    assert [rows[name]["answers_ok"] for name in ("layer-2", "ours:half")] == [None] * 2
    ours = rows["ours:half"]
    assert ours["layer_speedup"] == pytest.approx(4 / ours["layers_mean"])
    means = {name: row["latency_ms"]["mean"] for name, row in rows.items()}
    for name, base in (("efficiency", "ort-fused"), ("efficiency_plain", "ort")):
        saved = means[base] / means["ours:half"] / ours["layer_speedup"]
        assert ours[name] == pytest.approx(saved)
        assert rows["ours-int8:half"][name] is None  # no int8 graph to compare with
        assert rows["hf"][name] is None
    columns, cells = ratio_table(list(rows.values()))
    shown = {(row[0], row[1]): row[-2:] for row in cells}
    assert columns[-2:] == ["efficiency", "to the plain export"]
    assert shown["ours:half", "ort-fused"] == [ours["efficiency"], None]
    assert shown["ours:half", "ort"] == [None, ours["efficiency_plain"]]
    assert shown["ours:half", "hf"] == [None, None]
    assert sum(ours["exit_histogram"].values()) == 12
    assert ours["graphs"] == "one graph"  # a single text does not go stretch by stretch
    assert ours["accuracy"] > 0.5


def test_our_exits_by_two_back_ends(bundle, int8_bundle, short):
    pytest.importorskip("openvino")
    asked = ("--against", "hf", "--backend", "onnx,openvino", "--int8", int8_bundle)
    document = json.loads(run(bundle, *short, *asked, "--json").stdout)
    rows = {row["name"]: row for row in document["contenders"]}
    assert list(rows) == [
        "hf",
        *("ours:full", "ours:half", "ours-int8:full", "ours-int8:half"),
        *("ours-openvino:full", "ours-openvino:half"),
        *("ours-int8-openvino:full", "ours-int8-openvino:half"),
    ]
    assert set(rows["ours-openvino:half"]["against"]) == {"hf", "ours:half"}
    assert set(rows["ours-int8-openvino:full"]["against"]) == {"hf", "ours-int8:full"}
    assert set(rows["ours:half"]["against"]) == {"hf"}
    assert {row["backend"] for row in rows.values() if row["ours"]} == {"onnx", "openvino"}
    assert document["answers_ok"] is rows["ours-openvino:full"]["answers_ok"] is True
    assert "openvino" in document["versions"]
    same = [rows[name]["exit_histogram"] for name in ("ours:half", "ours-openvino:half")]
    assert same[0] == same[1]


def test_ratios_of_two_back_ends_are_printed(bundle, tmp_path):
    pytest.importorskip("openvino")
    lines = tmp_path / "lines.txt"
    lines.write_text("a good film\nthe plot was awful and dull\n", encoding="utf-8")
    short = ("--data", lines, "--points", "full", "--rounds", "1", "--against", "hf")
    said = run(bundle, *short, "--backend", "openvino,onnx").stdout
    ratios = said[said.index("times faster") :]
    assert "ours-openvino:full" in ratios
    ours = [line.split() for line in ratios.splitlines() if line.split()[:1] == ["ours:full"]]
    assert [line[1] for line in ours] == ["hf", "ours-openvino:full"]


def test_tables_for_people(bundle, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("a good film\nthe plot was awful and dull\n", encoding="utf-8")
    said = run(bundle, "--data", lines, "--against", "hf", "--points", "full", "--rounds", "1")
    assert "ours:full" in said.stdout
    assert "hf" in said.stdout
    assert "times faster" in said.stdout
    assert "against one fused graph of all layers" in said.stdout


def test_labels_of_another_task_do_not_stop_it(bundle, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\na good film,sport\na dull plot,news\n", encoding="utf-8")
    said = run(bundle, "--data", rows, "--against", "hf", "--rounds", "1", "--json")
    document = json.loads(said.stdout)
    assert "labels are not used" in document["warnings"][0]
    assert document["contenders"][0]["accuracy"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--against", "hf,onnx"], 'Unknown contender "onnx"'),
        (
            ["--against", "tflite"],
            "Available: hf, layer-k, openvino, ort, ort-fused, ort-fused-int8, ort-int8",
        ),
        (["--against", "hf,,ort"], "comma-separated names"),
        (["--against", "layer-7"], "exit after layer 7. The model has exits after layers 1, 2, 3"),
        (["--backend", "tflite"], 'Unknown back end "tflite"'),
        (["--backend", "torch"], 'The back end "torch" runs a model folder'),
        (["--backend", "onnx,,openvino"], "comma-separated names"),
        (["--points", "9x"], 'Unknown operating point "9x"'),
        (["--model", "nowhere"], "There is no model folder nowhere"),
    ],
)
def test_wrong_requests(bundle, short, options, message):
    with pytest.raises(De3Error, match=message) as found:
        run(bundle, *short, *options)
    assert found.value.exit_code == 2


def test_a_model_that_has_gone(bundle, short, tmp_path):
    """The bundle remembers where its model was; when that is gone, it says what to give."""
    lonely = shutil.copytree(bundle, tmp_path / "lonely")
    manifest = json.loads((lonely / "manifest.json").read_text())
    manifest["source"]["model"] = str(tmp_path / "gone")
    (lonely / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(De3Error, match="Pass its folder with --model FOLDER"):
        run(lonely, *short, "--against", "hf")


def test_an_int8_bundle_of_another_model(bundle, int8_bundle, short, tmp_path):
    other = shutil.copytree(int8_bundle, tmp_path / "other")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["source"]["weights"] = "0" * 64
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(De3Error, match="was exported from a different model"):
        run(bundle, *short, "--int8", other)


def test_only_bundles_are_measured(trained_model, short):
    with pytest.raises(De3Error, match="is not a bundle"):
        run(trained_model, *short)
