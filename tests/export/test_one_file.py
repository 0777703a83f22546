"""`de3 export --one-file`: what the file holds, that it runs alone, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.export.bundles import int8_bundle
from tests.fixtures_trained import toy_rows
from tests.runtime.test_stopping import answers

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy
from de3bert.exits.replay import exit_indices, margin
from de3bert.export import one_file
from de3bert.export.bundle import export_model
from de3bert.export.one_file import export_one_file
from de3bert.runtime.manifest import Manifest, is_bundle
from de3bert.runtime.sessions import open_session

__all__ = ["int8_bundle"]

TEXTS = [text for text, _ in toy_rows(16, seed=41)]
ALONE = """
import json, sys
import numpy as np, onnxruntime
from tokenizers import Tokenizer
folder, point, texts = sys.argv[1], sys.argv[2], sys.argv[3:]
session = onnxruntime.InferenceSession(folder + "/model.onnx")
told = session.get_modelmeta().custom_metadata_map
numbers = json.loads(told["de3bert.points"])[point]
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
tokenizer.no_padding()
for text in texts:
    made = tokenizer.encode(text)
    feeds = {"input_ids": np.array([made.ids]), "token_type_ids": np.array([made.type_ids])}
    for name, value in numbers.items():
        feeds[name] = np.array(value, np.float32 if isinstance(value, float) else np.int64)
    logits, layer = session.run(["logits", "exit_layer"], feeds)
    print(json.loads(told["de3bert.labels"])[logits[0].argmax()], layer)
assert not {"de3bert", "torch", "onnx"} & set(sys.modules)
"""


@pytest.fixture(scope="module")
def written(trained_bundle: Path, tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("web") / "model.onnx"
    return export_one_file(trained_bundle, out)


def metadata(path: str | Path) -> dict[str, str]:
    props = onnx.load(path, load_external_data=False).metadata_props
    return {each.key.removeprefix("de3bert."): each.value for each in props}


def test_the_file_says_what_it_is(written, trained_bundle):
    told, manifest = metadata(written.file), Manifest.read(trained_bundle)
    assert told["format"] == "1"
    assert told["version"] == de3bert.__version__
    assert told["rule"] == written.rule == "patience(edr)"
    assert told["default_point"] == written.default_point == "fast"
    assert told["precision"] == "fp32"
    assert json.loads(told["labels"]) == list(de3bert.load(trained_bundle).label_names)
    assert json.loads(told["exit_layers"]) == [1, 2, 3, 4]
    assert (told["layers"], told["max_length"]) == ("4", "24")
    assert told["tokenizer_sha256"] == manifest.files["tokenizer.json"].sha256
    assert json.loads(told["source"])["weights"] == manifest.source["weights"]
    points = json.loads(told["points"])
    assert next(iter(points)) == "fast"
    assert set(points) == {"fast", "sure", "twice", "second", "whole", "full"}
    assert points["second"]["max_layers"] == 2
    assert points["sure"]["lambda"] == 0
    assert points["twice"]["patience"] == 2
    assert list(written.left_out) == ["agreed"]  # patience is another kind of rule
    assert set(points["fast"]) == {"threshold", "lambda", "patience", "max_layers"}


def test_nothing_of_the_machine_is_in_it(written, trained_bundle, pointed_model):
    content = Path(written.file).read_bytes()
    for path in (trained_bundle, pointed_model, Path(one_file.__file__).parent, Path.home()):
        assert str(path).encode() not in content


def test_it_is_a_sound_onnx_model(written):
    onnx.checker.check_model(written.file, full_check=True)


@pytest.mark.parametrize("point", ["fast", "sure", "twice", "second", "full"])
def test_it_runs_without_this_package(written, trained_bundle, point):
    folder = str(Path(written.file).parent)
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, folder, point, *TEXTS], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    bundle = de3bert.load(trained_bundle)
    clear = margin(bundle.trace(TEXTS), bundle.policy(point)) > 1e-4
    expected = [f"{each.label} {each.exit_layer}" for each in bundle.predict(TEXTS, point)]
    for same, found, right in zip(clear, ran.stdout.splitlines(), expected, strict=True):
        assert not same or found == right
    assert clear.any()


def test_it_was_compared_with_the_bundle(written):
    assert written.alike.equal
    assert written.alike.other_layers == 0
    assert written.alike.set_aside < written.alike.answers / 4
    assert written.alike.logit <= 1e-4


def test_the_record_is_what_every_exit_said(trained_bundle, tmp_path):
    made = export_one_file(
        trained_bundle, tmp_path / "model.onnx", policy="edr(lambda=1.0) < 0.2", record=True
    )
    policy = Policy.parse("edr(lambda=1.0) < 0.2")
    session, bundle = open_session(Path(made.file)), de3bert.load(trained_bundle)
    trace, rows = bundle.trace(TEXTS), bundle.encode(TEXTS).rows
    left = exit_indices(trace, policy)
    for number, row in enumerate(rows):
        feeds = {name: np.array([row[name]]) for name in ("input_ids", "token_type_ids")}
        logits, layer, all_logits, signals = session.run(None, feeds)
        at = int(left[number])
        assert layer == trace.exit_layers[at]
        assert (all_logits[at] == logits[0]).all()
        np.testing.assert_allclose(all_logits[: at + 1], trace.logits[number, : at + 1], atol=1e-4)
        assert np.isnan(all_logits[at + 1 :]).all()
        for index in range(trace.exits):
            asked = index <= at and index < trace.exits - 1
            value = policy.signal(trace.view(index))[number] if asked else np.nan
            np.testing.assert_allclose(signals[index], value, atol=1e-4)
    assert len(set(left.tolist())) > 1


def test_eight_bits(int8_bundle, tmp_path):
    made = export_one_file(int8_bundle, tmp_path / "model.onnx")
    assert made.precision == metadata(made.file)["precision"] == "int8"
    assert made.alike.equal
    stretches = [each for each in onnx.load(made.file).functions if each.name[:6] == "layers"]
    assert len(stretches) == 3
    for each in stretches:
        assert "MatMulInteger" in {node.op_type for node in each.node}


def test_from_a_model_folder(pointed_model, ready_graphs, tmp_path, written):
    made = export_one_file(pointed_model, tmp_path / "model.onnx")
    assert (made.rule, made.points) == (written.rule, written.points)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "tokenizer.json"]
    assert not is_bundle(tmp_path)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"policy": "entropy < 0.2"}, "patience(edr)"),
        ({"policy": "max_probability > 0.9"}, "max_probability"),
        ({"policy": "energy < 0.3 x 2"}, "patience(energy)"),
        ({"policy": "distance_ratio < 0.3"}, "distance_ratio"),
        ({"policy": "full"}, "patience(edr)"),
        ({"point": "agreed"}, "patience"),
        ({"point": "second"}, "patience(edr)"),
    ],
)
def test_the_kind_of_rule_can_be_chosen(trained_bundle, tmp_path, asked, rule):
    made = export_one_file(trained_bundle, tmp_path / "model.onnx", **asked)
    assert made.rule == metadata(made.file)["rule"] == rule
    assert next(iter(made.points)) == made.default_point == next(iter(asked.values()))


def test_the_tokenizer_of_another_model_stays(trained_bundle, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="tokenizer of another model"):
        export_one_file(trained_bundle, tmp_path / "model.onnx")
    assert (tmp_path / "tokenizer.json").read_text() == "{}"
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("bandit", "more than compare"),
        ("keep(mean=3.0, along=4.0:0.1/1.5:0.9) entropy", "more than compare"),
    ],
)
def test_rules_that_do_not_fit_say_why(trained_bundle, tmp_path, policy, reason):
    with pytest.raises(UsageError, match=reason):
        export_one_file(trained_bundle, tmp_path / "model.onnx", policy=policy)
    assert not list(tmp_path.iterdir())


def test_a_model_of_two_gigabytes(trained_bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(one_file, "LARGEST", 1000)
    with pytest.raises(UsageError, match="ends at 2 GB"):
        export_one_file(trained_bundle, tmp_path / "model.onnx")


def test_a_bundle_has_its_precision_and_exits(trained_bundle, tmp_path):
    for asked in ({"int8": True}, {"exits": [1]}):
        with pytest.raises(UsageError, match="is a bundle already"):
            export_one_file(trained_bundle, tmp_path / "model.onnx", **asked)


def test_a_family_that_cannot_be_nested_still_has_its_bundle(
    pointed_model, trained_bundle, ready_graphs, tmp_path, monkeypatch
):
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no such operator\nmore")

    monkeypatch.setattr(one_file.Nest, "build", fails)
    made = export_model(pointed_model, tmp_path / "bundle")
    assert "RuntimeError: no such operator." in made.single["refused"]
    bundle = de3bert.load(tmp_path / "bundle")
    assert bundle.backend.manifest.single is None
    assert answers(bundle.predict(TEXTS[:1])) == answers(
        de3bert.load(trained_bundle).predict(TEXTS[:1])
    )
    with pytest.raises(De3Error, match="cannot be put into one graph: RuntimeError"):
        export_one_file(trained_bundle, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_what_does_not_answer_alike_is_not_written(trained_bundle, tmp_path, monkeypatch):
    folder = shutil.copytree(trained_bundle, tmp_path / "bundle")
    bundle = de3bert.load(folder)  # opens its graphs before one is changed
    bundle.predict(TEXTS)
    monkeypatch.setattr(one_file, "load", lambda _: bundle)
    path = folder / "layers-02-02.onnx"
    other = onnx.load(path)
    weight = next(each for each in other.graph.initializer if len(each.dims) == 2)
    array = onnx.numpy_helper.to_array(weight) * 1.5
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    onnx.save(other, path)
    with pytest.raises(De3Error, match="does not answer as the bundle does"):
        export_one_file(folder, tmp_path / "web" / "model.onnx")
    assert not (tmp_path / "web" / "model.onnx").exists()
