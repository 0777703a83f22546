"""A bundle is self-contained: nothing outside is read because it says so, nothing unknown used."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx.external_data_helper import convert_model_to_external_data
from tests.export.bundles import bundle_copy, pointed_model, trained_bundle

import de3bert
from de3bert.errors import De3Error
from de3bert.runtime.external_data import external_files
from de3bert.runtime.manifest import MANIFEST, Manifest, sign

__all__ = ["bundle_copy", "pointed_model", "trained_bundle"]

TEXTS = ["a great joy", "the film was dull"]


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / MANIFEST).read_text())


def write(folder: Path, document: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(document))


def known(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def refused(folder: Path, words: str, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """On loading; what only an open graph tells, when a batch comes."""
    with pytest.raises(De3Error, match=words) as error:
        de3bert.load(folder).predict(TEXTS)
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize("where", ["file", "distances", "files"])
@pytest.mark.parametrize("kind", ["up", "absolute", "system", "folder", "windows", "hidden", "nul"])
def test_names_are_plain_names_inside_the_folder(bundle_copy, where, kind):
    graph = bundle_copy / "layers-01-01.onnx"
    outside = bundle_copy.parent / "outside.onnx"
    shutil.copyfile(graph, outside)
    name = {
        "up": "../outside.onnx",
        "absolute": str(outside),
        "system": "/etc/hostname",
        "folder": "sub/outside.onnx",
        "windows": "..\\outside.onnx",
        "hidden": ".outside.onnx",
        "nul": "layers\0.onnx",
    }[kind]
    document = read(bundle_copy)
    if where == "files":
        document["files"][name] = known(outside)
    else:
        document["graphs"][0][where] = name
    write(bundle_copy, document)
    refused(bundle_copy, "manifest.json is damaged.*is not the plain name")


def test_a_link_that_leads_out(bundle_copy):
    graph = bundle_copy / "layers-01-01.onnx"
    graph.rename(bundle_copy.parent / "outside.onnx")
    graph.symlink_to("../outside.onnx")
    refused(bundle_copy, "is not self-contained: layers-01-01.onnx is a link")
    graph.unlink()
    (bundle_copy.parent / "outside.onnx").rename(bundle_copy / "inside.onnx")
    graph.symlink_to("inside.onnx")
    assert de3bert.load(bundle_copy).predict(TEXTS)
    manifest = bundle_copy / MANIFEST
    manifest.rename(bundle_copy.parent / "manifest.json")
    manifest.symlink_to("../manifest.json")
    refused(bundle_copy, "manifest.json is a link")


@pytest.mark.parametrize("name", ["layers-01-01.onnx", "distances-02.onnx", "config.json",
                                  "tokenizer.json"])  # fmt: skip
def test_every_file_that_is_used_is_listed(bundle_copy, name):
    document = read(bundle_copy)
    del document["files"][name]
    write(bundle_copy, document)
    refused(bundle_copy, f"is not self-contained: the bundle uses '{name}'")


def test_an_empty_list_of_files(bundle_copy):
    write(bundle_copy, read(bundle_copy) | {"files": {}})
    refused(bundle_copy, "which its manifest does not list")


def test_a_graph_that_was_slipped_in(bundle_copy):
    shutil.copyfile(bundle_copy / "layers-01-01.onnx", bundle_copy / "other.onnx")
    document = read(bundle_copy)
    document["graphs"][0]["file"] = "other.onnx"
    write(bundle_copy, document)
    refused(bundle_copy, "uses 'other.onnx'")


def with_external_data(folder: Path, name: str, location: str) -> None:
    """Moves the weights of a graph to a file beside it, under a name of our choice."""
    path = folder / name
    model = onnx.load(path)
    convert_model_to_external_data(model, location="weights.bin", size_threshold=1024)
    onnx.save(model, path)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "weights.bin"])
def test_weights_outside_of_a_graph_must_be_listed_and_inside(bundle_copy, location):
    with_external_data(bundle_copy, "layers-02-02.onnx", location)
    sign(bundle_copy, "layers-02-02.onnx")
    assert external_files(bundle_copy / "layers-02-02.onnx") == {location}
    refused(bundle_copy, "is not self-contained: the graph layers-02-02.onnx uses")


def test_weights_in_a_file_of_the_bundle_are_fine(bundle_copy, trained_bundle):
    with_external_data(bundle_copy, "layers-02-02.onnx", "weights.bin")
    sign(bundle_copy, "layers-02-02.onnx")
    sign(bundle_copy, "weights.bin")
    expected = de3bert.load(trained_bundle).predict(TEXTS, policy="full")
    assert de3bert.load(bundle_copy).predict(TEXTS, policy="full") == expected


def test_external_data_is_found_wherever_a_tensor_can_be(tmp_path):
    """In the graph, in attributes, in graphs within nodes, in functions, in sparse tensors."""
    from onnx import TensorProto, helper

    def outside(name: str) -> TensorProto:
        tensor = TensorProto(name=name, data_type=1, dims=[1])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="offset", value="0")
        tensor.external_data.add(key="location", value=f"{name}.bin")
        return tensor

    inner = helper.make_graph([], "inner", [], [], [outside("branch")])
    sparse = onnx.SparseTensorProto(values=outside("sparse"))
    nodes = [
        helper.make_node("Constant", [], ["a"], value=outside("attribute")),
        helper.make_node("If", ["b"], ["c"], then_branch=inner),
    ]
    nodes[0].attribute.add(name="many", type=onnx.AttributeProto.TENSORS).tensors.append(
        outside("many")
    )
    graph = helper.make_graph(nodes, "g", [], [], [outside("weights")])
    graph.sparse_initializer.append(sparse)
    model = helper.make_model(graph)
    own = model.functions.add(name="f", domain="d")
    own.node.append(helper.make_node("Constant", [], ["a"], value=outside("function")))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    names = {"branch", "sparse", "attribute", "many", "weights", "function"}
    assert external_files(tmp_path / "m.onnx") == {f"{name}.bin" for name in names}


@pytest.mark.parametrize("content", [b"", b"not a graph", b"\xff" * 100, b"\x3a\xff\xff\x7f"])
def test_files_that_are_no_graphs(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(De3Error, match="could not be loaded"):
        external_files(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(graphs=[]), "graphs: .*at least 1 item"),
        (lambda d: d["graphs"].reverse(), "not consecutive"),
        (lambda d: d["graphs"].pop(0), "not consecutive"),
        (lambda d: d["graphs"].pop(), "its config has exits at"),
        (lambda d: d["graphs"][0].update(last=10**9), "more than the limit|not consecutive"),
        (lambda d: d.update(inputs=[]), "inputs"),
        (lambda d: d.update(inputs=["evil"]), "inputs"),
        (lambda d: d.update(context={}), "which no graph provides"),
        (lambda d: d.update(padding=[]), "padding"),
        (lambda d: d.update(precision="\x1b[31m"), "precision"),
        (lambda d: d["graphs"][0].update(distances=None), "has no graph of distances"),
    ],
)  # fmt: skip
def test_manifests_that_do_not_fit(bundle_copy, change, words):
    document = read(bundle_copy)
    change(document)
    write(bundle_copy, document)
    refused(bundle_copy, words)


def test_graphs_in_each_others_place(bundle_copy):
    document = read(bundle_copy)
    first, second = document["graphs"][0], document["graphs"][-1]
    first["file"], second["file"] = second["file"], first["file"]
    write(bundle_copy, document)
    refused(bundle_copy, "which no graph provides|does not provide")


def config_of(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    sign(folder, "config.json")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, "has 2 classes, its config has 3"),
        ({"id2label": {"0": "a"}}, "at least two"),
        ({"id2label": {"0": "a", "2": "b"}}, "without gaps"),
        ({"id2label": ["a", "b"]}, "config is damaged"),
        ({"max_length": -1}, "max_length is a whole number from 1 up, got -1"),
        ({"max_length": 10**12}, "more than the limit"),
        ({"max_length": "24"}, "max_length"),
        ({"exit_layers": [1, 3, 4]}, "its config has exits at"),
        ({"exit_layers": [4, 3, 2, 1]}, "each above the one before"),
        ({"exit_layers": []}, "exit_layers"),
        ({"exit_layers": "1234"}, "exit_layers"),
        ({"operating_points": ["fast"]}, "operating_points is an object"),
        ({"default_point": 3}, "default_point is a word"),
        ({"text_pairs": "no"}, "text_pairs"),
        ({"method": None}, "method"),
    ],
)
def test_configs_that_do_not_fit(bundle_copy, changes, words):
    config_of(bundle_copy, **changes)
    refused(bundle_copy, words)


@pytest.mark.parametrize("text", ["[]", "3", "null", "[" * 100_000, '{"a":' * 100_000, "\x00"])
def test_configs_that_are_no_objects(bundle_copy, text):
    (bundle_copy / "config.json").write_text(text)
    refused(bundle_copy, "config.json is damaged")


def test_a_config_that_is_being_changed_is_sound_before_and_after(bundle_copy):
    """Killed between the config and the manifest, a bundle is still one."""
    path = bundle_copy / "config.json"
    before = path.read_text()
    after = before.replace('"max_length": 24', '"max_length": 20')
    sign(bundle_copy, "config.json", after)
    assert de3bert.load(bundle_copy).info.max_length == 24
    path.write_text(after)
    assert de3bert.load(bundle_copy).info.max_length == 20
    sign(bundle_copy, "config.json")
    assert de3bert.load(bundle_copy).info.max_length == 20
    path.write_text(before)
    refused(bundle_copy, "was altered: config.json")


def test_a_bundle_that_changes_while_it_is_read_is_read_again(bundle_copy, monkeypatch):
    """Between the manifest and the config somebody stores a point: that is no damage."""
    path = bundle_copy / "config.json"
    after = path.read_text().replace('"max_length": 24', '"max_length": 20')
    first = Manifest.check

    def check(self: Manifest, folder: Path) -> None:
        monkeypatch.setattr(Manifest, "check", first)
        path.write_text(after)
        sign(folder, "config.json")
        first(self, folder)

    monkeypatch.setattr(Manifest, "check", check)
    assert de3bert.load(bundle_copy).info.max_length == 20
