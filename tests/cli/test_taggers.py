"""The verbs with taggers."""

from __future__ import annotations

import shutil

import pytest

CALIBRATE = ["calibrate", "{m}", "--data", "{d}", "--name", "x"]


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


def test_inspecting_a_tagger(de3, model):
    said = de3("inspect", model, "--json")
    assert said.code == 0, said.err
    assert said.json["method"] == "sentee"
    assert said.json["task"] == "token-classification"


def test_explaining_a_sentence(de3, model):
    said = de3("explain", model, "the good film", "--policy", "entropy < 0.3 window 3")
    assert said.code == 0, said.err
    assert [line.split()[0] for line in said.out.splitlines()[4:]] == ["the", "good", "film"]
    found = de3("explain", model, "the good film", "--json").json
    assert [word["word"] for word in found["words"]] == ["the", "good", "film"]
    assert len(found["words"][0]["layers"]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "{m}", "a film", "a plot"], "leave out the second text"),
        (["explain", "{m}", " "], "list of words"),
        (["calibrate", "{m}", "--target", "layers=2", "--name", "x"], "Give rows with --data"),
        ([*CALIBRATE, "--target", "layers=2 keep"], "not independent rows"),
        ([*CALIBRATE, "--target", "agree=0.9 confidence=0.95"], "not independent rows"),
        ([*CALIBRATE, "--target", "layers=2", "--unlabelled", "x"], "not independent rows"),
        ([*CALIBRATE, "--target", "latency=5ms"], "Run first: de3 profile"),
        (["predict", "{m}", "--state", "s.json"], "is for text classifiers"),
        (["evaluate", "{m}", "--data", "none.jsonl"], "There is no file none.jsonl"),
        (["evaluate", "{m}", "--data", "x", "--text-pair", "b"], "leave out --text-pair"),
        (["evaluate", "{m}", "--data", "{d}", "--policy", "entropy < 0.1 window 4"], "odd number"),
        (["evaluate", "{m}", "--data", "{d}", "--metric", "f1"], "token-classification metric"),
    ],
)
def test_mistakes_are_refused_with_a_message(de3, model, word_data, arguments, message):
    said = de3(*(part.format(m=model, d=word_data.test) for part in arguments))
    assert said.code == 2
    assert message in said.err


def test_predict_streams_sentences(de3, model, word_data, tmp_path):
    said = de3("predict", model, stdin=b"the good film\n\na plot\xff\nfilm\n")
    assert said.code == 1
    assert [row.get("line") for row in said.lines] == [None, 2, 3, None]
    assert said.lines[0]["words"] == ["the", "good", "film"]
    assert "2 of 4 rows could not be answered" in said.err
    strict = de3("predict", model, "--strict", "--json", stdin=b"the good film\n\na plot\n")
    assert (strict.code, strict.json) == (1, said.lines[:1])
    assert "line 2" in strict.err
    row = '{"tokens": ["the", "film"], "tags": ["O", "O"], "id": 4}\n'
    (answer,) = de3("predict", model, stdin=row).lines
    assert (answer["id"], answer["input_tags"], answer["words"]) == (4, ["O", "O"], ["the", "film"])
    assert len(answer["tags"]) == 2
    lines = de3("predict", model, word_data.calibration, "--batch-size", "3")
    assert (lines.code, len(lines.lines)) == (0, 60)


def test_the_tags_are_those_of_predict_whatever_the_batches(de3, model, word_data):
    import de3bert
    from de3bert.data.words import read_words

    sentences = read_words(word_data.test).texts
    policy = "entropy < 0.3 window 5"
    expected = de3bert.load(model).predict(sentences, policy=policy)
    for size in ("1", "7", "64"):
        found = de3("predict", model, word_data.test, "--policy", policy, "--batch-size", size)
        assert [tuple(row["tags"]) for row in found.lines] == [each.tags for each in expected]
        assert [tuple(row["exit_layers"]) for row in found.lines] == [
            each.exit_layers for each in expected
        ]


def test_cut_sentences_are_counted_over_the_stream(de3, model):
    said = de3("predict", model, "--batch-size", "1", stdin=("film " * 60 + "\nfilm\n") * 20)
    assert said.code == 0
    assert "20 of 40 sentences were truncated to 32 tokens" in said.err.replace("\n", " ")


def test_trace_curve_and_a_point_from_the_trace(de3, model, word_data, tmp_path):
    trace = tmp_path / "dev.trace"
    made = de3("trace", model, "--data", word_data.calibration, "--out", trace, "--json")
    assert made.code == 0, made.err
    assert made.json["labelled"]
    drawn = de3("curve", trace, "--metric", "span_f1", "--json")
    assert drawn.code == 0, drawn.err
    assert [each["label"] for each in drawn.json["curves"]] == ["entropy", "fixed depth", "oracle"]
    asked = ("--target", "layers=1.5", "--name", "fast", "--json", "--quiet")
    by_trace = de3("calibrate", model, "--trace", trace, *asked)
    assert by_trace.code == 0, by_trace.err
    by_data = de3("calibrate", model, "--data", word_data.calibration, *asked)
    assert by_trace.json["policy"] == by_data.json["policy"]
    assert by_trace.json["measured"]["score"] == by_data.json["measured"]["score"]
    absent = de3("calibrate", model, "--trace", tmp_path / "no.trace", *asked)
    assert (absent.code, "There is no trace at" in absent.err) == (1, True)


def test_a_trace_of_texts_is_refused(de3, model, tmp_path):
    from tests.exits.traces import random_trace

    random_trace(rows=60).save(tmp_path / "texts.trace")
    said = de3("calibrate", model, "--trace", tmp_path / "texts.trace", "--target", "layers=1.5",
               "--name", "x")  # fmt: skip
    assert said.code == 2
    assert "The trace is not of sentences" in said.err


def test_a_bundle_does_what_the_model_does(de3, model, word_data, tmp_path):
    bundle = tmp_path / "bundle"
    done = de3("export", model, "--out", bundle, "--json", "--quiet")
    assert done.code == 0, done.err
    assert done.json["agreement"]["labels_equal"]
    policy = ("--policy", "entropy < 0.3 window 3")
    lines = [de3("predict", each, word_data.test, *policy).lines for each in (model, bundle)]
    for mine, theirs in zip(*lines, strict=True):
        assert mine.pop("scores") == pytest.approx(theirs.pop("scores"), abs=1e-4)
        assert mine == theirs
    found = de3("evaluate", bundle, "--data", word_data.test, *policy, "--json")
    assert found.json["sentences"] == 60
    assert "token-classification" in (bundle / "README.md").read_text()
    assert de3("inspect", bundle, "--json").json["task"] == "token-classification"


def test_what_is_for_sentences_is_refused_for_texts(de3, trained_model, toy_data):
    for line in ("entropy < 0.3 window 3", "entropy < 0.3 mean"):
        said = de3("evaluate", trained_model, "--data", toy_data.test, "--policy", line)
        assert said.code == 2
        assert "this model classifies whole texts" in " ".join(said.err.split())


def test_the_old_name_of_the_task_is_read(de3, tiny_backbone, word_data, tmp_path):
    recipe = tmp_path / "old.toml"
    recipe.write_text(
        f'backbone = "{tiny_backbone}"\nmethod = "sentee"\n[data]\ntask = "words"\n'
        f'train = "{word_data.train}"\ncalibration = "{word_data.calibration}"\nmax_length = 32\n'
        "[train]\nepochs = 0.1\n"
    )
    done = de3("train", "--recipe", recipe, "--out", tmp_path / "m", "--json", "--quiet")
    assert done.code == 0, done.err
    assert 'task = "token-classification"' in (tmp_path / "m" / "recipe.toml").read_text()
