"""What is done with a model folder can be done with a bundle, which stays valid."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.export.bundles import POINTS, bundle_copy, files_of, pointed_model, trained_bundle
from tests.runtime.test_classifier import point

import de3bert
from de3bert import Classifier
from de3bert.data.read import read_table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Trace
from de3bert.locks import LOCK
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.runtime.latency import measure_latency
from de3bert.runtime.manifest import Manifest
from de3bert.runtime.stored_points import store_points
from de3bert.runtime.summary import summarise
from de3bert.runtime.weights import weights_sha256

__all__ = ["bundle_copy", "pointed_model", "trained_bundle"]


@pytest.fixture(scope="module")
def bundle(trained_bundle: Path) -> Classifier:
    return de3bert.load(trained_bundle)


@pytest.fixture(scope="module")
def table(toy_data):
    return read_table(toy_data.calibration)


def test_a_bundle_takes_over_all_that_the_model_was_told(bundle, pointed_model):
    model = de3bert.load(pointed_model)
    assert bundle.points == model.points
    assert set(bundle.points) == set(POINTS)
    assert bundle.info == model.info
    assert bundle.point_name() == "fast"


def test_storing_points_keeps_a_bundle_valid(bundle_copy, bundle):
    before = json.loads((bundle_copy / "config.json").read_text())
    weights = weights_sha256(bundle_copy)
    store_points(bundle_copy, [point("early", "layer(1)")], default="early")
    loaded = de3bert.load(bundle_copy)
    assert loaded.predict(["a good film"])[0].exit_layer == 1
    assert set(loaded.points) == {*bundle.points, "early"}
    assert "| early | `layer(1)` |" in (bundle_copy / "README.md").read_text()
    after = json.loads((bundle_copy / "config.json").read_text())
    for config in (before, after):
        config.pop("operating_points")
        config.pop("default_point")
    assert after == before
    assert weights_sha256(bundle_copy) == weights  # traces made before are still of this bundle
    store_points(bundle_copy, [point("late", "layer(3)")], replace=True, default="nowhere")
    loaded = de3bert.load(bundle_copy)
    assert (set(loaded.points), loaded.point_name()) == ({"late"}, "full")


def test_a_refused_point_leaves_the_bundle_as_it_was(bundle_copy):
    before = {path.name: path.read_bytes() for path in bundle_copy.iterdir()}
    with pytest.raises(UsageError, match="letters, digits"):
        store_points(bundle_copy, [point("two times", "layer(1)")])
    assert {path.name: path.read_bytes() for path in bundle_copy.iterdir()} == before


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_manifest_that_cannot_be_written_leaves_the_bundle_as_it_was(
    bundle_copy, monkeypatch, failure
):
    before = files_of(bundle_copy)

    def interrupted(*args: object) -> None:
        raise failure

    monkeypatch.setattr("de3bert.runtime.manifest.write_json", interrupted)
    with pytest.raises(type(failure)):
        store_points(bundle_copy, [point("early", "layer(1)")])
    assert {k: v for k, v in files_of(bundle_copy).items() if k != LOCK} == before
    assert de3bert.load(bundle_copy).predict(["a good film"])


@pytest.mark.parametrize("family", [None, "entropy", "patience"])
def test_a_bundle_is_calibrated_like_a_model(bundle_copy, table, family):
    made = calibrate_model(bundle_copy, "layers=1.2", "new", table=table, family=family)
    assert made.measured["layer_speedup"] >= 1.2
    loaded = de3bert.load(bundle_copy)
    assert loaded.points["new"].policy == made.policy
    again = evaluate(loaded, table, point="new")
    # Real stopping on the same rows gives what replay promised.
    assert again.score == pytest.approx(made.measured["score"], abs=1e-9)
    assert again.layers_mean == pytest.approx(made.measured["layers_mean"], abs=0.05)


def test_a_trace_belongs_to_the_bundle_that_made_it(bundle_copy, bundle, table, tmp_path):
    trace = trace_table(bundle, table)
    assert trace.info["weights"] == bundle.weights_sha256 == weights_sha256(bundle_copy)
    trace.save(tmp_path / "bundle.trace")
    store_points(bundle_copy, [point("early", "layer(1)")])
    made = calibrate_model(bundle_copy, "layers=1.5", "new", trace=tmp_path / "bundle.trace")
    assert de3bert.load(bundle_copy).points["new"].policy == made.policy
    trace.info["weights"] = "of another"
    trace.save(tmp_path / "other.trace")
    with pytest.raises(UsageError, match="other weights"):
        calibrate_model(bundle_copy, "layers=1.5", "new", trace=tmp_path / "other.trace")


def test_weights_are_named_by_their_graphs(bundle, bundle_copy, pointed_model):
    assert bundle.weights_sha256 != de3bert.load(pointed_model).weights_sha256
    assert Manifest.read(bundle_copy).source["weights"] == weights_sha256(pointed_model)
    shutil.copy(bundle_copy / "layers-03-03.onnx", bundle_copy / "layers-02-02.onnx")
    Manifest.write(bundle.backend.manifest, bundle_copy)
    assert weights_sha256(bundle_copy) != bundle.weights_sha256


@pytest.mark.parametrize("name", POINTS)
def test_evaluation_gives_what_was_measured_with_the_model(bundle, table, name):
    """The points were measured by torch; real stopping in the bundle gives the same."""
    measured = bundle.points[name].measured
    found = evaluate(bundle, table, point=name)
    assert found.score == pytest.approx(measured["score"], abs=1 / 120)
    assert found.layers_mean == pytest.approx(measured["layers_mean"], abs=0.05)
    assert found.rows == measured["rows"]


def test_a_trace_is_stored_and_read_again(bundle, table, tmp_path):
    trace = trace_table(bundle, table)
    trace.save(tmp_path / "t.trace")
    again = Trace.load(tmp_path / "t.trace")
    assert (again.logits == trace.logits).all()
    assert again.exit_layers == (1, 2, 3, 4)


def test_a_summary_has_the_facts(bundle):
    info = summarise(bundle)
    assert (info["family"], info["layers"], info["exits"]) == ("bert", 4, [1, 2, 3, 4])
    assert (info["bundle"], info["graphs"]) == ("fp32", ["1-1", "2-2", "3-3", "4-4"])
    assert info["prototypes_set"] == "2 of 2 classes, means: moving"
    assert info["bytes"] == sum(each.bytes for each in bundle.backend.manifest.files.values())
    json.dumps(info)


def test_latency_is_measured_for_every_policy(bundle):
    policies = {name: bundle.policy(name) for name in ("fast", "whole")}
    found = measure_latency(bundle, ["a good film", "a dull plot"], policies, warm_up=1)
    assert set(found) == {"fast", "whole"}
    assert all(0 < seen.p50 <= seen.p95 for seen in found.values())


def test_labels_that_training_never_saw(bundle_copy):
    rows = read_table({"text": ["good", "bad"], "label": ["pos", "mixed"]})
    with pytest.raises(UsageError, match=r'"mixed" \(1x\).*Known classes: neg, pos'):
        calibrate_model(bundle_copy, "layers=2.0", "p", table=rows)
    one = read_table({"text": ["good"], "label": ["pos"]})
    with pytest.raises(De3Error, match="The fastest is"):
        calibrate_model(bundle_copy, "layers=9", "p", table=one, force=True)
    assert set(de3bert.load(bundle_copy).points) == set(POINTS)
