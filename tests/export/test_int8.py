"""Eight-bit weights: smaller graphs whose operating points were chosen from their own answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.export.bundles import POINTS, files_of
from tests.fixtures_trained import toy_rows, write_csv
from tests.model.families import tiny_bert
from tests.runtime.test_classifier import point

import de3bert
from de3bert import Classifier
from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits import replay, signals
from de3bert.exits.calibrate import measure
from de3bert.exits.rules import Threshold
from de3bert.export import bundle as exporting
from de3bert.export.bundle import export_model
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.runtime.stored_points import store_points

TEXTS = [text for text, _ in toy_rows(30, seed=71)]
# Activations share one scale per batch, so that neighbours in it move a signal by so much.
NEIGHBOURS = 0.02


@pytest.fixture(scope="module")
def int8(int8_bundle: Path) -> Classifier:
    return de3bert.load(int8_bundle)


@pytest.fixture(scope="module")
def table(toy_data):
    return read_table(toy_data.calibration)


def test_the_products_of_the_layers_are_in_integers(int8_bundle, trained_bundle):
    for path in sorted(int8_bundle.glob("*.onnx")):
        graph = onnx.load(path).graph
        kinds = [node.op_type for node in graph.node]
        if path.name.startswith("distances"):
            assert path.read_bytes() == (trained_bundle / path.name).read_bytes()
            continue
        assert kinds.count("MatMulInteger") == 4
        sizes = {each.name: list(each.dims) for each in graph.initializer}
        products = [node for node in graph.node if node.op_type == "MatMul"]
        heads = [sizes.get(node.input[1]) for node in products]
        assert [32, 2] in heads  # the exit stays exact, for thresholds are compared with it
        assert path.stat().st_size < 0.7 * (trained_bundle / path.name).stat().st_size
        weights = [each for each in graph.initializer if each.data_type == onnx.TensorProto.INT8]
        largest = max(np.abs(onnx.numpy_helper.to_array(each)).max() for each in weights)
        assert 32 < largest <= 64  # seven bits: pairs of products do not overflow


def test_it_is_close_to_the_model_but_not_the_same(int8, classifier):
    ours, theirs = int8.trace(TEXTS), classifier.trace(TEXTS)
    apart = np.abs(signals.entropy(ours.logits) - signals.entropy(theirs.logits)).max()
    assert 1e-5 < apart < 0.05
    assert (ours.predictions[:, -1] == theirs.predictions[:, -1]).mean() > 0.9
    assert int8.backend.manifest.precision == int8.backend.size()["bundle"] == "int8"


def test_points_are_calibrated_on_rows_that_were_found_again(int8, classifier, table):
    assert set(int8.points) == set(POINTS)
    assert int8.info.default_point == "fast"
    trace = trace_table(int8, table)
    for name, stored in int8.points.items():
        assert stored.target == classifier.points[name].target
        assert stored.measured["data"]["sha256"] == table.sha256
        assert type(stored.policy.rule) is type(classifier.points[name].policy.rule)
        again = measure(trace, stored.policy)
        for key in ("score", "layers_mean", "exit_histogram", "full_score"):
            assert again[key] == stored.measured[key]
        if isinstance(stored.policy.rule, Threshold):
            # A threshold lies where the bundle's own signals are, not where the model's were.
            assert stored.policy != classifier.points[name].policy
    assert int8.points["twice"].policy.rule.count == 2


def test_the_report_has_the_scores_of_both(int8, classifier, table):
    report = int8.backend.manifest.made["recalibrated"]
    assert (report["rows"], report["metric"], report["dropped"]) == (120, "accuracy", {})
    for name, each in (("model", classifier), ("bundle", int8)):
        assert report["full"][name] == evaluate(each, table, policy="full").score
    assert set(report["points"]) == set(POINTS)
    for name, seen in report["points"].items():
        assert seen["policy"] == [str(each.points[name].policy) for each in (classifier, int8)]
        for key in ("score", "layer_speedup"):
            assert seen[key] == [each.points[name].measured[key] for each in (classifier, int8)]


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("size", [1, 32])
def test_a_stored_point_gives_what_was_measured(int8, table, name, size):
    stored = int8.points[name]
    found = evaluate(int8, table, point=name, batch_size=size)
    if isinstance(stored.policy.rule, Threshold):
        # A chosen threshold lies next to the signal of some row, and rows move with their batch.
        assert found.score == pytest.approx(stored.measured["score"], abs=2 / 120)
        assert found.layers_mean == pytest.approx(stored.measured["layers_mean"], abs=0.06)
        trace = trace_table(int8, table)
        left = [each.exit_layer for each in int8.predict(table.texts, name, batch_size=size)]
        assert (replay(trace, stored.policy).exit_layers == left).mean() > 0.93
        return
    histogram = {str(layer): rows for layer, rows in found.exit_histogram.items()}
    assert (found.score, histogram) == (stored.measured["score"], stored.measured["exit_histogram"])


def test_neighbours_in_a_batch_move_a_signal_only_a_little(int8):
    alone, *others = (
        signals.entropy(int8.trace(TEXTS, batch_size=size).logits) for size in (1, 7, 30)
    )
    for together in others:
        assert np.abs(together - alone).max() < NEIGHBOURS


def test_one_text_at_a_time_repeats_exactly(int8):
    first = [int8.predict([text], "fast")[0] for text in TEXTS]
    again = int8.predict(TEXTS, "fast", batch_size=1)
    assert first == again


def test_rows_can_be_given(pointed_model, ready_graphs, toy_data, tmp_path):
    other = read_table(toy_data.test)
    made = export_model(pointed_model, tmp_path / "bundle", int8=True, table=other.take(range(90)))
    assert made.precision == "int8"
    assert made.recalibrated is not None
    assert made.recalibrated.rows == 90
    for stored in de3bert.load(tmp_path / "bundle").points.values():
        assert stored.measured["rows"] == 90
        assert stored.measured["data"]["source"] == str(toy_data.test)


def with_source(model: Path, source: Path, out: Path) -> Path:
    """The model, whose points say that their rows came from `source`."""
    folder = Path(shutil.copytree(model, out))
    config = json.loads((folder / "config.json").read_text())
    for stored in config["operating_points"].values():
        stored["measured"]["data"]["source"] = str(source)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_rows_that_cannot_be_found_are_asked_for(pointed_model, toy_data, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "_write", None)  # said before the long work begins
    shorter = write_csv(tmp_path / "shorter.csv", toy_rows(100, 2))
    unreadable = tmp_path / "odd.csv"
    unreadable.write_text("body,mark\ngood,pos\n")
    places = (tmp_path / "gone.csv", toy_data.test, shorter, unreadable, tmp_path)
    for number, place in enumerate(places):
        model = with_source(pointed_model, place, tmp_path / f"model-{number}")
        for asked in ({"int8": True}, {"exits": [2]}):
            with pytest.raises(UsageError, match=r"recalibrated.*not found.*--data FILE"):
                export_model(model, tmp_path / "bundle", **asked)
    assert not (tmp_path / "bundle").exists()


def test_the_first_point_whose_rows_are_there_is_enough(
    pointed_model, ready_graphs, toy_data, tmp_path
):
    model = Path(shutil.copytree(pointed_model, tmp_path / "model"))
    store_points(model, [point("aaa", "layer(1)")])  # says nothing of its rows
    config = json.loads((model / "config.json").read_text())
    stored = config["operating_points"]
    config["operating_points"] = {"aaa": stored.pop("aaa"), **stored}
    (model / "config.json").write_text(json.dumps(config))
    made = export_model(model, tmp_path / "bundle", int8=True)
    assert made.recalibrated is not None
    assert made.recalibrated.rows == 120
    assert set(made.recalibrated.points) == {"aaa", *POINTS}


def test_a_target_out_of_reach_drops_its_point_and_says_why(
    pointed_model, ready_graphs, toy_data, tmp_path
):
    model = Path(shutil.copytree(pointed_model, tmp_path / "model"))
    made = point("hasty", "layer(1)")
    impossible = type(made)(made.name, made.policy, "layers=40.0", made.measured)
    store_points(model, [impossible], default="hasty")
    done = export_model(model, tmp_path / "bundle", int8=True)
    assert done.recalibrated is not None
    assert set(done.recalibrated.dropped) == {"hasty"}
    assert "The fastest is" in done.recalibrated.dropped["hasty"]
    loaded = de3bert.load(tmp_path / "bundle")
    assert set(loaded.points) == set(POINTS)
    assert loaded.info.default_point is None
    assert loaded.predict(["a good film"])[0].exit_layer == 4


def test_labels_that_the_model_does_not_know(pointed_model, ready_graphs, bundle_copy, tmp_path):
    before = files_of(bundle_copy)
    rows = read_table({"text": ["good", "bad"], "label": ["pos", "mixed"]})
    with pytest.raises(UsageError, match=r'"mixed" \(1x\)'):
        export_model(pointed_model, bundle_copy, int8=True, table=rows)
    assert files_of(bundle_copy) == before


def test_a_model_without_points_needs_no_rows(tmp_path, tiny_tokenizer):
    """From the model to 8-bit graphs, nothing of it stood in for."""
    model = EarlyExitForSequenceClassification.from_backbone(
        tiny_bert(num_hidden_layers=2), labels=["neg", "pos"], max_length=24, method="full"
    )
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    made = export_model(tmp_path / "model", tmp_path / "bundle", int8=True)
    assert (made.precision, made.recalibrated) == ("int8", None)
    ours, theirs = (de3bert.load(tmp_path / name).trace(TEXTS) for name in ("bundle", "model"))
    apart = np.abs(ours.logits - theirs.logits).max()
    assert 0 < apart < 0.05
