"""Operating points: chosen on labelled rows or a trace, stored in the folder and its card."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.test_classifier import point

import de3bert
from de3bert.data.read import read_table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy, Trace, replay
from de3bert.locks import LOCK
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.runtime.latency import measure_latency
from de3bert.runtime.stored_points import store_points
from de3bert.runtime.summary import summarise


@pytest.fixture(scope="module")
def calibration(classifier, toy_data, tmp_path_factory) -> Path:
    """A trace of the calibration rows."""
    path = tmp_path_factory.mktemp("trace") / "calibration.trace"
    trace_table(classifier, read_table(toy_data.calibration)).save(path)
    return path


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ("layers=1.5", lambda seen: seen["layer_speedup"] >= 1.5),
        ("drop=0.02", lambda seen: seen["score"] >= seen["full_score"] - 0.02 - 1e-9),
        ("accuracy=0.8", lambda seen: seen["score"] >= 0.8),
        ("full", lambda seen: seen["layer_speedup"] == 1),
    ],
)
def test_a_point_meets_its_target_and_measures_as_it_was_replayed(
    model_copy, calibration, toy_data, target, fits
):
    made = calibrate_model(model_copy, target, "p", trace=calibration)
    assert fits(made.measured)
    loaded = de3bert.load(model_copy)
    assert loaded.points["p"].policy == made.policy
    again = evaluate(loaded, read_table(toy_data.calibration), point="p")
    # Real stopping on the same rows gives what replay promised.
    assert again.score == pytest.approx(made.measured["score"], abs=1e-9)
    assert again.layers_mean == pytest.approx(made.measured["layers_mean"], abs=0.05)


def test_rows_and_a_trace_of_them_give_the_same_point(model_copy, calibration, toy_data):
    by_trace = calibrate_model(model_copy, "layers=2.0", "a", trace=calibration)
    table = read_table(toy_data.calibration)
    by_rows = calibrate_model(model_copy, "layers=2.0", "b", table=table, batch_size=7)
    assert by_rows.policy.signal == by_trace.policy.signal
    assert by_rows.measured["layers_mean"] == pytest.approx(
        by_trace.measured["layers_mean"], abs=0.05
    )
    assert by_rows.measured["data"]["rows"] == 120


def test_what_is_asked_must_be_given(model_copy, calibration, toy_data):
    for more in ({}, {"trace": calibration, "table": read_table(toy_data.calibration)}):
        with pytest.raises(UsageError, match=r"--data.*--trace"):
            calibrate_model(model_copy, "layers=2.0", "p", **more)
    with pytest.raises(UsageError, match="letters, digits"):
        calibrate_model(model_copy, "layers=2.0", "two times", trace=calibration)
    with pytest.raises(UsageError, match="Cannot read the target"):
        calibrate_model(model_copy, "speed=2", "p", trace=calibration)
    with pytest.raises(UsageError, match="Unknown policy family"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=calibration, family="entorpy")
    with pytest.raises(UsageError, match="Unknown metric"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=calibration, metric="f2")


@pytest.mark.parametrize(
    "wrong",
    [{"family": "entorpy"}, {"metric": "f2"}, {"target": "speed=2"}, {"name": "two times"}],
)
def test_a_wrong_request_is_refused_before_the_long_pass(model_copy, toy_data, monkeypatch, wrong):
    monkeypatch.setattr("de3bert.runtime.calibrate_folder.load", None)
    table = read_table(toy_data.calibration)
    asked = {"target": "full", "name": "p", **wrong}
    with pytest.raises(UsageError):
        calibrate_model(model_copy, table=table, **asked)


def test_a_target_out_of_reach_names_the_nearest_and_stores_nothing(model_copy, calibration):
    before = (model_copy / "config.json").read_bytes()
    with pytest.raises(De3Error, match=r"The fastest is `.*`, with a layer speed-up of 4"):
        calibrate_model(model_copy, "layers=9", "p", trace=calibration)
    with pytest.raises(De3Error, match=r"The best is 0\.9\d+, by `"):
        calibrate_model(model_copy, "accuracy=1.0", "p", trace=calibration)
    assert (model_copy / "config.json").read_bytes() == before


def test_labels_that_training_never_saw(model_copy):
    table = read_table({"text": ["good", "bad"], "label": ["pos", "mixed"]})
    with pytest.raises(UsageError, match=r'"mixed" \(1x\).*Known classes: neg, pos'):
        calibrate_model(model_copy, "layers=2.0", "p", table=table)


def test_a_trace_of_another_model_is_refused(model_copy, calibration, tmp_path):
    trace = Trace.load(calibration)
    shorter = Trace(
        trace.logits[:, 1:], trace.distances[:, 1:], trace.labels, trace.tokens,
        trace.exit_layers[1:], trace.label_names, trace.info,
    )  # fmt: skip
    shorter.save(tmp_path / "shorter.trace")
    with pytest.raises(UsageError, match=r"exits at \[2, 3, 4\].*another model"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=tmp_path / "shorter.trace")
    renamed = Trace(
        trace.logits, trace.distances, trace.labels, trace.tokens, trace.exit_layers,
        ("off", "on"), trace.info,
    )  # fmt: skip
    renamed.save(tmp_path / "renamed.trace")
    with pytest.raises(UsageError, match=r"off, on.*another model"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=tmp_path / "renamed.trace")


def test_a_trace_of_the_same_shape_with_other_weights_is_refused(model_copy, calibration):
    from safetensors.torch import load_file, save_file

    path = model_copy / "model.safetensors"
    tensors = load_file(path)
    tensors["heads.exits.0.bias"] += 1
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(UsageError, match="other weights"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=calibration)


@pytest.mark.parametrize("spoil", ["cut", "flip", "text"])
def test_a_damaged_trace(model_copy, calibration, tmp_path, spoil):
    data = bytearray(calibration.read_bytes())
    if spoil == "cut":
        data = data[: len(data) // 2]
    elif spoil == "flip":
        data[-3] ^= 0xFF
    else:
        data = bytearray(b"text,label\n")
    (tmp_path / "bad.trace").write_bytes(data)
    with pytest.raises(De3Error, match=r"bad\.trace.*(damaged|cannot be read)"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=tmp_path / "bad.trace")
    with pytest.raises(De3Error, match="no trace at"):
        calibrate_model(model_copy, "layers=2.0", "p", trace=tmp_path / "none.trace")


def test_a_trace_says_what_made_it(calibration, classifier):
    info = Trace.load(calibration).info
    assert info["weights"] == classifier.weights_sha256
    assert info["data"]["rows"] == 120
    assert {"model", "method", "versions", "date", "max_length"} <= set(info)


def test_the_card_shows_the_points(model_copy):
    store_points(model_copy, [point("fast", "layer(1)")], default="fast")
    card = (model_copy / "README.md").read_text()
    assert "| fast | `layer(1)` | layers=2.0 | 1.000 (accuracy) | 0.900 to 1.000 | 2.00 |" in card
    assert 'point="fast"' in card
    assert "tiny-bert" in card
    assert "2 classes (neg, pos), 4 layers" in card


def test_storing_points_keeps_everything_else(model_copy):
    before = json.loads((model_copy / "config.json").read_text())
    store_points(model_copy, [point("fast", "layer(1)")])
    store_points(model_copy, [point("fast", "layer(2)"), point("safe", "layer(3)")])
    after = json.loads((model_copy / "config.json").read_text())
    points = after.pop("operating_points")
    assert {name: stored["policy"] for name, stored in points.items()} == {
        "fast": "layer(2)",
        "safe": "layer(3)",
    }
    before.pop("operating_points")
    assert after == before
    with pytest.raises(UsageError, match="not a local folder"):
        store_points(model_copy / "nowhere", [point("fast", "layer(1)")])


def test_a_write_that_fails_leaves_the_points_as_they_were(model_copy, monkeypatch):
    before = {path.name: path.read_bytes() for path in model_copy.iterdir()}

    def interrupted(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store_points(model_copy, [point("fast", "layer(1)")])
    left = {path.name: path.read_bytes() for path in model_copy.iterdir() if path.name != LOCK}
    assert left == before


def test_a_summary_has_the_facts(classifier):
    info = summarise(classifier)
    assert (info["family"], info["layers"], info["exits"]) == ("bert", 4, [1, 2, 3, 4])
    assert (info["labels"], info["method"]) == (["neg", "pos"], "de3")
    assert (info["base_depth"], info["router"]) == (4, "none")
    assert info["prototypes_set"] == "2 of 2 classes, means: moving"
    # Three heads of 32 x 2 + 2 and three networks of 32 x 32 + 32.
    assert info["exit_parameters"] == {"classifiers": 198, "prototypical networks": 3168}
    json.dumps(info)


def test_latency_is_measured_for_every_policy(classifier):
    policies = {name: Policy.parse(line) for name, line in [("full", "full"), ("one", "layer(1)")]}
    found = measure_latency(classifier, ["a good film", "a dull plot"], policies, warm_up=1)
    assert set(found) == {"full", "one"}
    for seen in found.values():
        assert 0 < seen.p50 <= seen.p95
        assert np.isfinite(seen.mean)


def test_a_stored_point_is_the_same_policy_in_replay_and_engine(model_copy, calibration, toy_data):
    made = calibrate_model(model_copy, "layers=2.0", "2x", trace=calibration, wide=True)
    trace = Trace.load(calibration)
    answers = de3bert.load(model_copy).predict(read_table(toy_data.calibration).texts, point="2x")
    same = replay(trace, made.policy).exit_layers == [each.exit_layer for each in answers]
    assert same.mean() > 0.95  # a chosen threshold lies next to the signal of some row


def test_texts_that_were_cut_are_counted_with_the_point(model_copy):
    long = "good " * 200
    rows = {"text": [long, "a dull plot", "a good film", long], "label": ["pos", "neg"] * 2}
    made = calibrate_model(model_copy, "full", "all", table=read_table(rows))
    assert made.measured["data"]["truncated"] == 2
