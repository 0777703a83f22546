"""What people get wrong: a clear message, the right exit code, and nothing half-written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures_trained import toy_rows, write_csv
from tests.warm import python

FAILED, USAGE = 1, 2


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def untouched(tmp_path):
    """Checks at the end that a command left nothing behind."""
    place = tmp_path / "place"
    place.mkdir()
    yield place
    assert list(place.iterdir()) == []


FILES = {
    "empty.csv": (b"", FAILED, "is empty"),
    "header.csv": (b"text,label\n", FAILED, "no rows below it"),
    "columns.csv": (b"words,mark\ngood,pos\nbad,neg\n", USAGE, "no column of text"),
    "unlabelled.csv": (b"text\ngood\nbad\n", USAGE, "no column of labels"),
    "blank.csv": (b"text,label\ngood,pos\n,neg\n", FAILED, 'empty "text" (row 3)'),
    "null.jsonl": (
        b'{"text": "good", "label": "pos"}\n{"text": null, "label": "neg"}\n',
        FAILED,
        'empty "text" (line 2)',
    ),
    "nan.jsonl": (
        b'{"text": "good", "label": "pos"}\n{"text": NaN, "label": "neg"}\n',
        FAILED,
        'empty "text" (line 2)',
    ),
    "latin.csv": ("text,label\ncafé,pos\nbad,neg\n".encode("latin-1"), FAILED, "UTF-8"),
    "broken.jsonl": (b'{"text": "good", "label"\n', FAILED, "not valid JSON"),
    "odd.xyz": (b"good\n", USAGE, ".csv"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verb", ["train", "evaluate", "calibrate"])
def test_rows_that_cannot_be_read(
    de3, trained_model, tiny_backbone, tmp_path, untouched, verb, name
):
    content, code, words = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    before = (trained_model / "config.json").read_bytes()
    more = {
        "train": ["--backbone", tiny_backbone, "--out", untouched / "m"],
        "evaluate": [trained_model],
        "calibrate": [trained_model, "--target", "drop=0.01", "--name", "p"],
    }[verb]
    said = de3(verb, *more, "--data", path, "--json")
    assert (said.code, said.out) == (code, ""), said.err
    assert said.err.startswith("error: ")
    assert words in said.err
    assert name in said.err
    assert (trained_model / "config.json").read_bytes() == before


@pytest.mark.parametrize("name", ["empty.csv", "header.csv", "columns.csv", "odd.xyz"])
def test_files_that_cannot_be_predicted(de3, trained_model, tmp_path, name):
    content, code, words = FILES[name]
    (tmp_path / name).write_bytes(content)
    said = de3("predict", trained_model, tmp_path / name)
    assert (said.code, said.out) == (code, "")
    assert words in said.err


@pytest.mark.parametrize("name", ["blank.csv", "null.jsonl", "nan.jsonl", "latin.csv"])
def test_one_bad_row_leaves_the_others_answered(de3, trained_model, tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name][0])
    said = de3("predict", trained_model, tmp_path / name)
    assert said.code == FAILED
    assert sorted("error" in row for row in said.lines) == [False, True]
    assert "1 of 2 rows could not be answered" in said.err


def test_lines_that_cannot_be_predicted(de3, trained_model):
    said = de3("predict", trained_model, stdin="")
    assert (said.code, said.out, "is empty" in said.err) == (FAILED, "", True)
    said = de3("predict", trained_model, stdin="good\n".encode("utf-16"))
    assert (said.code, said.out, "UTF-16" in said.err) == (FAILED, "", True)


def test_one_class_only(de3, tiny_backbone, tmp_path, untouched):
    rows = write_csv(tmp_path / "one.csv", [("good", "pos"), ("great", "pos")])
    said = de3("train", "--data", rows, "--backbone", tiny_backbone, "--out", untouched / "m")
    assert said.code == USAGE
    assert 'only the class "pos"' in said.err


@pytest.mark.parametrize("verb", ["evaluate", "calibrate", "trace"])
def test_labels_that_training_never_saw(de3, trained_model, tmp_path, untouched, verb):
    rows = write_csv(tmp_path / "new.csv", [("good", "pos"), ("so so", "mixed")])
    more = {
        "evaluate": [],
        "calibrate": ["--target", "layers=2.0", "--name", "p"],
        "trace": ["--out", untouched / "t.trace"],
    }[verb]
    said = de3(verb, trained_model, "--data", rows, *more)
    assert (said.code, said.out) == (USAGE, "")
    assert '"mixed" (1x)' in said.err
    assert "Known classes: neg, pos" in said.err


@pytest.mark.parametrize("verb", ["inspect", "explain", "predict"])
def test_folders_that_are_no_models(de3, tiny_backbone, model_copy, tmp_path, verb):
    (tmp_path / "file").write_text("")
    (tmp_path / "bare").mkdir()
    shutil.copytree(model_copy, tmp_path / "cut")
    weights = (tmp_path / "cut" / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(weights[:-100])
    (model_copy / "config.json").write_text('{"model_type": ')
    text = ["a good film"] if verb == "explain" else []
    for place, code, words in (
        (tmp_path / "file", USAGE, "is a file"),
        (tmp_path / "bare", USAGE, "no config.json"),
        (tiny_backbone, USAGE, "has no exits"),
        (tmp_path / "cut", FAILED, "damaged or incomplete"),
        (model_copy, FAILED, "config.json is damaged"),
        ("no-such-model", USAGE, 'No model "no-such-model"'),
    ):
        said = de3(verb, place, *text, stdin="a good film\n")
        assert (said.code, said.out) == (code, "")
        assert words in said.err


WRONG = {
    "point": (["predict", "{model}", "--point", "3x"], "Available: full"),
    "policy": (["predict", "{model}", "--policy", "entorpy < 1"], 'Unknown signal "entorpy"'),
    "direction": (["predict", "{model}", "--policy", "entropy > 1"], "leaves at `<`"),
    "both": (["predict", "{model}", "--policy", "full", "--point", "full"], "not both"),
    "layer": (["predict", "{model}", "--policy", "layer(7)"], "Exits are at: 1, 2, 3, 4"),
    "metric": (["evaluate", "{model}", "--data", "{test}", "--metric", "f2"], "Unknown metric"),
    "family": (
        ["calibrate", "{model}", "--data", "{test}", "--target", "full", "--name", "p",
         "--family", "entorpy"],
        "Unknown policy family",
    ),
    "target": (
        ["calibrate", "{model}", "--data", "{test}", "--target", "speed=2", "--name", "p"],
        "Cannot read the target",
    ),
    "name": (
        ["calibrate", "{model}", "--data", "{test}", "--target", "full", "--name", "a b"],
        "letters, digits",
    ),
    "neither": (["calibrate", "{model}", "--target", "full", "--name", "p"], "--data"),
    "method": (
        ["train", "--data", "{test}", "--backbone", "{backbone}", "--out", "m", "--method", "ed3"],
        'Unknown method "ed3"',
    ),
    "pooling": (
        ["train", "--data", "{test}", "--backbone", "{backbone}", "--out", "m",
         "--set", "pooling=median"],
        'Unknown pooling "median"',
    ),
    "setting": (
        ["train", "--data", "{test}", "--backbone", "{backbone}", "--out", "m", "--set", "lr=1"],
        "lr: Extra inputs",
    ),
    "backbone": (["train", "--data", "{test}", "--out", "m"], "pass --backbone"),
    "recipe": (["train", "--recipe", "sst3", "--out", "m"], 'Did you mean "sst2"?'),
    "no recipe": (["search", "sst3", "--out", "m"], 'Did you mean "sst2"?'),
    "figure": (["curve", "{trace}", "--plot", "c.xyz"], ".png, .svg, .pdf"),
    "numbers": (["profile", "{model}", "--batches", "1,b"], '--batches takes whole numbers'),
    "gap": (["export", "{model}", "--exits", "2,,4", "--out", "b"], "--exits takes whole numbers"),
    "batch": (["predict", "{model}", "--batch-size", "0"], "batch-size"),
    "option": (["predict", "{model}", "--pont", "2x"], "--pont"),
    "verb": (["pedict", "{model}"], "pedict"),
    "file": (["predict", "{model}", "nowhere.csv"], "There is no file nowhere.csv"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests(
    de3, trained_model, tiny_backbone, toy_data, tmp_path, monkeypatch, untouched, case
):
    from de3bert.data.read import read_table
    from de3bert.runtime.evaluate import trace_table
    from de3bert.runtime.load import load

    arguments, words = WRONG[case]
    trace = tmp_path / "t.trace"
    if case == "figure":
        trace_table(load(trained_model), read_table(toy_data.test)).save(trace)
    places = {"model": trained_model, "test": toy_data.test, "backbone": tiny_backbone,
              "trace": trace}  # fmt: skip
    monkeypatch.chdir(untouched)
    said = de3(*(each.format(**places) for each in arguments), stdin="a good film\n")
    assert (said.code, said.out) == (USAGE, ""), said.err
    assert words in " ".join(said.err.replace("│", " ").split())


def test_a_target_out_of_reach_names_the_nearest(de3, model_copy, toy_data):
    said = de3("calibrate", model_copy, "--data", toy_data.test, "--target", "layers=40",
               "--name", "p")  # fmt: skip
    assert (said.code, said.out) == (FAILED, "")
    assert "The fastest is" in said.err
    assert json.loads((model_copy / "config.json").read_text())["operating_points"] == {}


def test_traces_that_are_wrong(de3, model_copy, toy_data, tmp_path):
    trace = tmp_path / "t.trace"
    de3("trace", model_copy, "--data", toy_data.test, "--out", trace)
    (tmp_path / "cut.trace").write_bytes(trace.read_bytes()[:-50])
    shutil.copyfile(model_copy / "model.safetensors", tmp_path / "weights.trace")
    (tmp_path / "rows.trace").write_text("text,label\n")
    for name, words in (
        ("cut", "cannot be read"),
        ("weights", "not a trace"),
        ("rows", "cannot be read"),
        ("none", "no trace at"),
    ):
        said = de3("curve", tmp_path / f"{name}.trace")
        assert (said.code, said.out) == (FAILED, "")
        assert words in said.err


def test_a_fresh_model_has_no_prototypes_yet(
    de3, tiny_backbone, tiny_tokenizer, tmp_path, toy_data
):
    from de3bert.model import EarlyExitForSequenceClassification

    folder = tmp_path / "fresh"
    EarlyExitForSequenceClassification.from_backbone(
        tiny_backbone, labels=["neg", "pos"], max_length=24
    ).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    for verb in (
        ["predict", folder, "--policy", "edr(lambda=1.0) < 0.2"],
        ["trace", folder, "--data", toy_data.test, "--out", tmp_path / "t.trace"],
    ):
        said = de3(*verb, stdin="a good film\n")
        assert (said.code, said.out) == (FAILED, "")
        assert "never set: neg, pos" in said.err
    assert not (tmp_path / "t.trace").exists()


def test_prototypes_that_a_method_does_not_have(de3, tiny_backbone, tmp_path):
    rows = write_csv(tmp_path / "s.csv", toy_rows(40, 5))
    trained = de3("train", "--data", rows, "--backbone", tiny_backbone, "--method",
                  "joint-entropy", "--set", "train.epochs=1", "--out", tmp_path / "m")  # fmt: skip
    assert trained.code == 0
    said = de3("predict", tmp_path / "m", "--policy", "edr(lambda=1.0) < 0.2", stdin="good\n")
    assert (said.code, said.out) == (USAGE, "")
    assert "this model has none (method joint-entropy)" in said.err


def test_places_that_are_taken(de3, model_copy, toy_data, tiny_backbone, tmp_path):
    train = ["train", "--data", toy_data.train, "--backbone", tiny_backbone]
    said = de3(*train, "--out", model_copy)
    assert (said.code, "--overwrite" in said.err) == (USAGE, True)
    (tmp_path / "file").write_text("kept")
    said = de3(*train, "--out", tmp_path / "file", "--overwrite")
    assert (said.code, "not a model folder" in said.err) == (USAGE, True)
    said = de3("trace", model_copy, "--data", toy_data.test, "--out", tmp_path)
    assert (said.code, "there is a folder where a file is needed" in said.err) == (FAILED, True)
    assert (tmp_path / "file").read_text() == "kept"


FULL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
sys.argv = ["de3", *sys.argv[1:]]
from de3bert.cli.main import main
main()
"""


def test_a_full_disk_in_a_real_process(trained_model, toy_data, tmp_path):
    out = tmp_path / "t.trace"
    out.write_bytes(b"what was there")
    command = [*python(), "-c", FULL_DISK, "trace", trained_model, "--data", toy_data.test,
               "--out", out]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert out.read_bytes() == b"what was there"
    assert [path.name for path in tmp_path.iterdir()] == ["t.trace"]


def test_ctrl_c_while_a_trace_is_written(de3, trained_model, toy_data, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("de3bert.exits.trace_file.save_file", interrupted)
    said = de3("trace", trained_model, "--data", toy_data.test, "--out", tmp_path / "t.trace")
    assert (said.code, said.out) == (130, "")
    assert "stopped" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_not_installed(de3, trained_model, tmp_path, toy_data, monkeypatch):
    trace = tmp_path / "t.trace"
    de3("trace", trained_model, "--data", toy_data.test, "--out", trace)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = de3("curve", trace, "--plot", tmp_path / "c.png")
    assert (said.code, said.out) == (FAILED, "")
    assert "pip install 'de3bert[plot]'" in said.err
    assert not Path(tmp_path / "c.png").exists()
