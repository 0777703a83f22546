"""What an export writes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import onnx
from tests.export.bundles import POINTS, ROUNDING, files_of

import de3bert
from de3bert.export.attention import FUSED
from de3bert.export.bundle import export_model
from de3bert.runtime.manifest import Manifest


def operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def test_a_bundle_has_a_graph_for_every_stretch_and_nothing_else(trained_bundle):
    assert set(files_of(trained_bundle)) == {
        "README.md", "config.json", "manifest.json", "tokenizer.json",
        *(f"layers-0{layer}-0{layer}.onnx" for layer in (1, 2, 3, 4)),
        *(f"distances-0{layer}.onnx" for layer in (1, 2, 3)),
        "single.onnx",
    }  # fmt: skip
    manifest = Manifest.read(trained_bundle)
    assert manifest.precision == "fp32"
    assert [(graph.first, graph.last) for graph in manifest.graphs] == [
        (1, 1), (2, 2), (3, 3), (4, 4)
    ]  # fmt: skip
    assert [graph.distances is None for graph in manifest.graphs] == [False, False, False, True]
    assert manifest.inputs == ("input_ids", "attention_mask", "token_type_ids")
    assert set(manifest.files) == set(files_of(trained_bundle)) - {"README.md", "manifest.json"}


def test_a_layer_is_one_attention_and_one_product_for_query_key_and_value(trained_bundle):
    for layer in (1, 2, 3, 4):
        found = operators(trained_bundle / f"layers-0{layer}-0{layer}.onnx")
        # Query, key and value together; the attention's output; the two of the feed-forward part;
        # and the mean over the tokens.
        assert (found["MultiHeadAttention"], found["MatMul"]) == (1, 5)
        assert found["Softmax"] == 0
    found = operators(trained_bundle / "distances-01.onnx")
    # Projection, unit length, an axis for the classes, difference, square, sum, half. One operator
    # for square and sum is slower, and adds up in an order that loses a digit.
    assert sum(found.values()) <= 7


def test_a_bundle_says_nothing_of_the_machine_that_made_it(trained_bundle):
    for path in trained_bundle.glob("*.onnx"):
        data = path.read_bytes()
        assert b"site-packages" not in data
        assert str(Path(de3bert.__file__).parent).encode() not in data


def test_the_manifest_says_how_it_was_made(trained_bundle, pointed_model):
    made = Manifest.read(trained_bundle).made
    assert made["attention"] == FUSED
    assert {"de3bert", "torch", "onnxruntime"} <= set(made["versions"])
    assert made["agreement"]["rows"] == 8
    assert made["agreement"]["labels_equal"]
    assert made["agreement"]["exits_equal"]
    assert 0 < made["agreement"]["logit"] < ROUNDING
    assert made["recalibrated"] is None
    assert Manifest.read(trained_bundle).source["model"] == str(pointed_model)


def test_a_report_is_plain_json(pointed_model, ready_graphs, tmp_path):
    made = export_model(pointed_model, tmp_path / "bundle")
    document = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert document["folder"] == str(tmp_path / "bundle")
    assert (document["precision"], document["exit_layers"]) == ("fp32", [1, 2, 3, 4])
    assert document["bytes"] == sum(map(len, files_of(tmp_path / "bundle").values()))
    assert document["agreement"]["rows"] == 8
    assert "# bundle\n" in (tmp_path / "bundle" / "README.md").read_text()


def test_the_card_shows_the_points_and_how_to_use_them(trained_bundle):
    card = (trained_bundle / "README.md").read_text()
    assert re.search(r'clf\.predict\(\["some text"\], point="fast"\)', card)
    assert all(f"| {name} | `" in card for name in POINTS)
