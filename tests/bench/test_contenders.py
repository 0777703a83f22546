"""Every contender runs the same model: it gives the labels that the model gives."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

import de3bert
from de3bert import Classifier
from de3bert.bench.contender import CONTENDERS, find
from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.bench.ours import at_points
from de3bert.errors import De3Error, UsageError


@pytest.fixture(scope="module")
def model(trained_model):
    return de3bert.load(trained_model, device="cpu")


def made(material, name):
    if name == "openvino":
        pytest.importorskip("openvino")
    return find(name)(material, name)()


@pytest.mark.parametrize("name", ["hf", "ort", "ort-fused", "openvino", "layer-2", "layer-k"])
def test_labels_are_the_models(material, model, texts, name):
    contender = made(material, name)
    layer = 2 if name.startswith("layer") else 4
    right = model.predict(texts, policy=f"layer({layer})")
    alone = [contender.predict([text], 1)[0] for text in texts]
    assert [answer.label for answer in alone] == [answer.label for answer in right]
    assert {(answer.exit_layer, answer.layers) for answer in alone} == {(layer, 4)}
    np.testing.assert_allclose(
        [answer.score for answer in alone], [answer.score for answer in right], atol=1e-4
    )
    assert (contender.full_depth, contender.precision) == (layer == 4, "fp32")
    # In batches, sorted by length inside: the order of the answers is that of the texts.
    for size in (8, 64):
        batched = contender.predict(texts, size)
        assert [answer.label for answer in batched] == [answer.label for answer in right]


@pytest.mark.parametrize(("name", "file"), [("ort-int8", "plain"), ("ort-fused-int8", "fused")])
def test_eight_bits_give_nearly_the_same(material, model, texts, name, file):
    contender = made(material, name)
    right = model.predict(texts, policy="full")
    pairs = zip(contender.predict(texts, 16), right, strict=True)
    assert np.mean([ours.label == theirs.label for ours, theirs in pairs]) > 0.9
    assert contender.precision == "int8"
    plain, small = (material.folder / each for each in (f"{file}.onnx", f"{file}-int8.onnx"))
    assert small.stat().st_size < plain.stat().st_size


def test_pairs_of_texts(material, model, texts):
    pairs = list(zip(texts[:10], texts[10:20], strict=True))
    of_pairs = Classifier(model.backend, model.source)
    of_pairs.info = replace(model.info, text_pairs=True)
    right = [answer.label for answer in of_pairs.predict(pairs, policy="full")]
    for name in ("hf", "ort"):
        assert [answer.label for answer in made(material, name).predict(pairs, 4)] == right


def test_hf_is_the_librarys_own_model(material):
    backbone = material.plain.backbone
    assert type(backbone).__name__ == "BertModel"
    assert {type(part).__name__ for part in backbone.encoder.layer} == {"BertLayer"}
    assert backbone.config._attn_implementation == "sdpa"


def test_torch_gets_the_bundles_threads_and_has_its_own_back(bundle, tmp_path):
    import torch

    before = torch.get_num_threads()
    borrowed = BenchMaterial(load_bundle(bundle), None, tmp_path)
    borrowed.threads = before + 1
    assert borrowed.trained.model.training is False
    assert torch.get_num_threads() == before + 1
    borrowed.close()
    assert torch.get_num_threads() == before


def test_a_graph_is_written_once(material):
    made(material, "ort")
    before = (material.folder / "plain.onnx").stat().st_mtime_ns
    made(material, "ort")
    assert (material.folder / "plain.onnx").stat().st_mtime_ns == before


def test_ours_answers_as_the_classifier_does(bundle, texts):
    classifier = load_bundle(bundle)
    full, half = at_points(classifier, None)
    assert (full.name, half.name) == ("ours:full", "ours:half")
    assert (full.full_depth, half.full_depth) == (True, False)
    assert half.predict(texts, 8) == classifier.predict(texts, point="half", batch_size=8)
    assert half.tokenise(texts[:2]) == classifier.encode(texts[:2]).rows


def test_the_table_of_contenders():
    assert sorted(CONTENDERS) == [
        "hf", "layer-k", "openvino", "ort", "ort-fused", "ort-fused-int8", "ort-int8",
    ]  # fmt: skip
    assert find("layer-11") is find("layer-k")
    with pytest.raises(UsageError, match=r'Unknown contender "layer-x"'):
        find("layer-x")


def test_openvino_that_is_not_installed(material, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(De3Error, match=r"pip install 'de3bert\[openvino\]'"):
        find("openvino")(material, "openvino")


def test_a_model_with_other_weights_is_refused(bundle, trained_model, tmp_path):
    other = shutil.copytree(trained_model, tmp_path / "other")
    weights = other / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(UsageError, match="does not have the weights"):
        BenchMaterial(load_bundle(bundle), other, tmp_path)
    with pytest.raises(UsageError, match="is a bundle"):
        BenchMaterial(load_bundle(bundle), bundle, tmp_path)
