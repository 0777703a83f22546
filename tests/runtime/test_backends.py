"""Back ends by name: which one runs a folder, and what is said when it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
from tests.export.bundles import ROUNDING, apart, int8_bundle, pointed_model, trained_bundle
from tests.fixtures_trained import toy_rows
from typer.testing import CliRunner

import de3bert
from de3bert.cli.main import VERBS, app
from de3bert.data.read import read_table
from de3bert.errors import De3Error, UsageError
from de3bert.runtime.backends import BACKENDS
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.profile import profile, write_profile

__all__ = ["int8_bundle", "pointed_model", "trained_bundle"]

TEXTS = [text for text, _ in toy_rows(30, seed=91)]
RUN_A_MODEL = {"predict", "evaluate", "trace", "calibrate", "curve", "explain", "profile", "bench",
               "inspect"}  # fmt: skip


def test_the_usual_ones(pointed_model, trained_bundle):
    assert {"torch", "onnx", "openvino"} <= set(BACKENDS)
    assert de3bert.load(pointed_model).opening.backend == "torch"
    assert de3bert.load(trained_bundle).opening.backend == "onnx"
    assert de3bert.load(trained_bundle, backend="onnx").opening.backend == "onnx"


def test_all_three_say_the_same(pointed_model, trained_bundle):
    pytest.importorskip("openvino")
    torch, onnx, openvino = (
        de3bert.load(folder, backend=name)
        for folder, name in ((pointed_model, "torch"), (trained_bundle, "onnx"),
                             (trained_bundle, "openvino"))
    )  # fmt: skip
    expected = torch.trace(TEXTS)
    for each in (onnx, openvino):
        found = each.trace(TEXTS, batch_size=4)
        assert apart(found, expected) <= ROUNDING
        np.testing.assert_allclose(found.logits, expected.logits, atol=ROUNDING)
    assert openvino.weights_sha256 == onnx.weights_sha256
    assert openvino.points == onnx.points


def test_eight_bits_by_openvino(int8_bundle):
    pytest.importorskip("openvino")
    onnx, openvino = (de3bert.load(int8_bundle, backend=name) for name in ("onnx", "openvino"))
    for size in (1, 7, 30):
        theirs, ours = (each.trace(TEXTS, batch_size=size) for each in (onnx, openvino))
        assert np.median(np.abs(ours.logits - theirs.logits)) <= ROUNDING
        assert apart(ours, theirs) <= 0.02  # a step of 8 bits, where rounding falls otherwise


@pytest.mark.parametrize(
    ("folder", "name", "words"),
    [
        ("trained_bundle", "torch", ["runs a model folder", "is a bundle", "onnx, openvino"]),
        ("pointed_model", "onnx", ["runs a bundle", "is a model folder", "torch", "de3 export"]),
        ("pointed_model", "openvino", ["runs a bundle", "de3 export"]),
        ("trained_bundle", "openvin", ['Unknown back end "openvin"', 'Did you mean "openvino"?']),
        ("trained_bundle", 3, ["backend is given by its name, a str; got 3 (an int)"]),
    ],
)
def test_a_back_end_that_does_not_fit(request, folder, name, words):
    with pytest.raises(UsageError) as error:
        de3bert.load(request.getfixturevalue(folder), backend=name)
    for word in words:
        assert word in str(error.value)


def test_a_model_folder_on_the_hub_is_no_bundle(trained_model, monkeypatch):
    monkeypatch.setattr("de3bert.runtime.load.fetched", lambda source, wanted, how: trained_model)
    with pytest.raises(UsageError, match="some/model is a model folder"):
        de3bert.load("some/model", backend="openvino")


def test_openvino_takes_the_processor_alone(trained_bundle):
    with pytest.raises(UsageError, match=r'runs on the CPU, got device="gpu" \(back end openvino'):
        de3bert.load(trained_bundle, device="gpu", backend="openvino")


@pytest.mark.parametrize(
    ("folder", "name", "module", "extra"),
    [
        ("trained_bundle", "openvino", "openvino", r"de3bert\[openvino\]"),
        ("trained_bundle", "onnx", "onnxruntime", "de3bert"),
        ("pointed_model", "torch", "transformers", r"de3bert\[train\]"),
    ],
)
def test_one_that_is_not_installed(request, folder, name, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    source = str(request.getfixturevalue(folder))
    wanted = f"back end \"{name}\" needs {module}, which is not installed.*pip install '{extra}'"
    with pytest.raises(De3Error, match=wanted) as error:
        de3bert.load(source, backend=name)
    assert error.value.exit_code == 1
    said = CliRunner().invoke(app, ["explain", source, "a good film", "--backend", name])
    assert str(said.exception) == str(error.value)


def test_an_openvino_that_cannot_read_our_graphs(trained_bundle, monkeypatch):
    pytest.importorskip("openvino")
    from de3bert.runtime.openvino_graph import _core

    _core.cache_clear()
    monkeypatch.setattr(metadata, "version", lambda name: "2026.2.1")
    with pytest.raises(De3Error, match=r"needs OpenVINO 2026\.3 or later.*2026\.2 is installed"):
        de3bert.load(trained_bundle, backend="openvino")
    _core.cache_clear()


def test_every_load_of_openvino_may_have_threads_of_its_own(trained_bundle):
    pytest.importorskip("openvino")
    one, two = (de3bert.load(trained_bundle, threads=n, backend="openvino") for n in (1, 2))
    for each, threads in ((one, 1), (two, 2)):
        compiled = each.backend.stretches[1].graph.compiled
        assert compiled.get_property("INFERENCE_NUM_THREADS") == threads == each.backend.threads
        assert str(compiled.get_property("INFERENCE_PRECISION_HINT")) == "<Type: 'float32'>"
    assert one.trace(TEXTS).logits == pytest.approx(two.trace(TEXTS).logits, abs=1e-5)


def test_answers_are_not_written_over_by_the_next_call(trained_bundle):
    pytest.importorskip("openvino")
    backend = de3bert.load(trained_bundle, backend="openvino").backend
    rows = backend.encoder(TEXTS).rows
    state, first = backend.advance(backend.start(rows[:3]), 1, read=True)
    before, hidden = first.copy(), state.feeds["hidden"].copy()
    backend.advance(backend.start(rows[3:6]), 1, read=True)
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(state.feeds["hidden"], hidden)


def test_loading_imports_only_the_library_that_runs(trained_bundle):
    pytest.importorskip("openvino")
    code = (
        "import sys, de3bert, de3bert.runtime.backends\n"
        "heavy = {'torch', 'transformers', 'onnxruntime', 'openvino'}\n"
        "print(*sorted(heavy & set(sys.modules)), end=';')\n"
        "clf = de3bert.load(sys.argv[1], backend='openvino')\n"
        "clf.predict('a good film')\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(trained_bundle)], capture_output=True, text=True
    )
    assert done.stdout.strip() == ";openvino", done.stderr


def test_every_verb_that_runs_a_model_has_the_option():
    for verb in VERBS:
        name = verb.__name__.rsplit(".", 1)[-1].replace("_", "-")
        said = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
        assert ("--backend " in said) == (name in RUN_A_MODEL), name


def test_times_are_those_of_one_back_end(trained_bundle, tmp_path, toy_data):
    folder = shutil.copytree(trained_bundle, tmp_path / "bundle")
    cost = profile(de3bert.load(folder, backend="onnx"), batches=[1], lengths=[8, 16], rounds=3)
    assert cost.info["backend"] == "onnx"
    write_profile(folder, cost)
    table, target = read_table(toy_data.calibration), "latency=60000ms"  # met on any machine
    with pytest.raises(UsageError, match=r"measured with the back end onnx.*--backend openvino"):
        calibrate_model(folder, target, "soon", table=table, backend="openvino")
    point = calibrate_model(folder, target, "soon", table=table, backend="onnx")
    assert point.measured["predicted_ms"] > 0
