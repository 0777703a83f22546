"""Points in a folder: names that are taken, and many processes that store at once."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.warm import python

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Policy
from de3bert.locks import LOCK
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.manifest import Manifest
from de3bert.runtime.profile import read_profile
from de3bert.runtime.stored_points import store_points

PROCESSES, POINTS = 8, 5


def point(name: str, line: str = "layer(1)") -> OperatingPoint:
    return OperatingPoint(name, Policy.parse(line), "layers=2.0", {})


# Waits until all are ready, then stores its points one by one.
STORE = """
import sys, time
from pathlib import Path
from de3bert.exits import OperatingPoint, Policy
from de3bert.runtime.stored_points import store_points
folder, number, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ready = folder.parent / "ready"
(ready / number).touch()
while len(list(ready.iterdir())) < int(sys.argv[4]):
    time.sleep(0.01)
for index in range(count):
    name = f"p{number}-{index}"
    store_points(folder, [OperatingPoint(name, Policy.parse("layer(1)"), "layers=2.0", {})])
"""


def store_together(folder: Path) -> dict[str, object]:
    """The stored points after several processes have added theirs at the same time."""
    (folder.parent / "ready").mkdir()
    numbers = [str(number) for number in range(PROCESSES)]
    started = [
        subprocess.Popen([*python(), "-c", STORE, str(folder), number, str(POINTS), str(PROCESSES)])
        for number in numbers
    ]
    assert [process.wait(timeout=120) for process in started] == [0] * PROCESSES
    return json.loads((folder / "config.json").read_text())["operating_points"]


def bundle_in(folder: Path) -> Path:
    """A folder that is a bundle for all that storing a point looks at."""
    folder.mkdir()
    config = {
        "model_type": "de3bert", "id2label": {"0": "neg", "1": "pos"}, "exit_layers": [1, 2],
        "method": "de3", "pooling": "mean", "prototypes": "none", "max_length": 16,
        "backbone_config": {"model_type": "bert"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "graph.onnx").write_bytes(b"\x08\x07")  # ONNX with nothing but a version
    (folder / "tokenizer.json").write_text("{}")
    Manifest(
        precision="fp32",
        graphs=({"first": 1, "last": 2, "file": "graph.onnx"},),
        inputs=("input_ids",),
        context={"hidden": ["rows", "tokens", 4]},
        padding={"input_ids": 0},
        prototypes_unset=(),
        source={"model": "m", "weights": None},
        made={"date": "2026-01-01"},
    ).write(folder)
    return folder


def test_points_of_many_processes_are_all_kept(model_copy):
    stored = store_together(model_copy)
    assert len(stored) == PROCESSES * POINTS
    assert len(de3bert.load(model_copy).points) == PROCESSES * POINTS


def test_a_bundle_that_many_processes_write_to_still_verifies(tmp_path):
    folder = bundle_in(tmp_path / "bundle")
    stored = store_together(folder)
    assert len(stored) == PROCESSES * POINTS
    assert (folder / LOCK).exists()
    manifest = Manifest.read(folder)  # every hash is right
    assert LOCK not in manifest.files


@pytest.mark.parametrize("name", ["full", "default"])
def test_names_that_mean_something_are_refused(model_copy, toy_data, name):
    from de3bert.data.read import read_table

    with pytest.raises(UsageError, match="cannot be called that"):
        store_points(model_copy, [point(name)])
    with pytest.raises(UsageError, match="cannot be called that"):
        calibrate_model(model_copy, "layers=2.0", name, table=read_table(toy_data.calibration))
    assert not de3bert.load(model_copy).points


def test_full_may_be_stored_as_what_it_is(model_copy):
    store_points(model_copy, [point("full", "full")])
    assert str(de3bert.load(model_copy).policy("full")) == "full"


def test_a_stored_point_never_redefines_full_depth(model_copy):
    path = model_copy / "config.json"
    config = json.loads(path.read_text())
    config["operating_points"] = {"full": point("full").to_json()}
    path.write_text(json.dumps(config))
    loaded = de3bert.load(model_copy)
    assert str(loaded.policy("full")) == "full"
    assert loaded.predict(["a good film"], "full")[0].exit_layer == loaded.depth


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-x", "x" * 65, "ü", "a\n", None, 3])
def test_names_that_cannot_be_typed_are_refused(model_copy, name):
    with pytest.raises(UsageError, match="name is made of"):
        store_points(model_copy, [point(name)])


def test_a_damaged_config_is_said(model_copy):
    path = model_copy / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "operating_points": "none"}))
    with pytest.raises(De3Error, match="damaged"):
        store_points(model_copy, [point("a")])


def test_a_damaged_manifest_leaves_the_bundle_as_it_was(tmp_path):
    folder = bundle_in(tmp_path / "bundle")
    document = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**document, "files": 3}))
    before = (folder / "config.json").read_text()
    with pytest.raises(De3Error, match="lists no files"):
        store_points(folder, [point("a")])
    assert (folder / "config.json").read_text() == before


@pytest.mark.parametrize("text", ["[]", "{", '{"format": "de3bert-cost"}', "[" * 100_000, "3"])
def test_a_damaged_profile_is_said(tmp_path, text):
    (tmp_path / "profile.json").write_text(text)
    with pytest.raises(De3Error, match="profile"):
        read_profile(tmp_path)


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(UsageError, match="is not a local folder"):
        store_points(tmp_path / "none", [point("a")])
    shutil.copytree(Path(__file__).parent, tmp_path / "other", ignore=lambda *_: [])
    with pytest.raises(UsageError, match="not a model folder"):
        store_points(tmp_path / "other", [point("a")])
