"""Bundles of the tiny trained classifier, exported once per test run and shared by all workers."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.fixtures_trained import ToyData, once

from de3bert.exits import Trace
from de3bert.runtime.manifest import Manifest

BUNDLE_BACKENDS = ("onnx", "openvino") if find_spec("openvino") else ("onnx",)
ROUNDING = 1e-4  # how far the signals of an fp32 bundle may be from the model's
# name -> target and family: one point of every kind that can be stored.
POINTS = {
    "fast": ("layers=1.5", "edr"),
    "sure": ("layers=1.5", "entropy"),
    "twice": ("layers=1.3", "entropy x 2"),
    "agreed": ("drop=0.02", "patience"),
    "second": ("layers=2.0", "layers"),
    "whole": ("full", None),
}


@pytest.fixture(scope="session")
def pointed_model(
    tmp_path_factory: pytest.TempPathFactory, trained_model: Path, toy_data: ToyData
) -> Path:
    """The trained model with `POINTS`, calibrated on rows that can be found again."""
    import de3bert
    from de3bert.data.read import read_table
    from de3bert.runtime.calibrate_folder import calibrate_model
    from de3bert.runtime.evaluate import trace_table

    def build(folder: Path) -> None:
        shutil.copytree(trained_model, folder)
        trace = folder.with_suffix(".trace")
        trace_table(de3bert.load(folder), read_table(toy_data.calibration)).save(trace)
        for name, (target, family) in POINTS.items():
            calibrate_model(
                folder, target, name, trace=trace, family=family, default=name == "fast"
            )

    return once(tmp_path_factory, "pointed-model", build)


@pytest.fixture(scope="session")
def trained_bundle(tmp_path_factory: pytest.TempPathFactory, pointed_model: Path) -> Path:
    """`pointed_model` as a bundle. Not to be changed: see `bundle_copy`."""
    from de3bert.export.bundle import export_model

    return once(tmp_path_factory, "bundle", lambda out: export_model(pointed_model, out))


@pytest.fixture
def bundle_copy(trained_bundle: Path, tmp_path: Path) -> Path:
    """The bundle, to spoil or to write in."""
    return Path(shutil.copytree(trained_bundle, tmp_path / "bundle"))


def written_from(ready: Path, patch: pytest.MonkeyPatch) -> None:
    """Lets exports take the graphs of a ready fp32 bundle in place of tracing the model again."""
    from de3bert.export import bundle
    from de3bert.export.check import Agreement

    manifest = Manifest.read(ready)

    def copied(model: object, folder: Path, layers: tuple[int, ...]) -> tuple[Manifest, Agreement]:
        assert layers == tuple(graph.last for graph in manifest.graphs)
        shutil.copytree(ready, folder, dirs_exist_ok=True)
        return manifest, Agreement(**manifest.made["agreement"])

    patch.setattr(bundle, "_write", copied)


@pytest.fixture
def ready_graphs(trained_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For what an export of `pointed_model` does after its graphs are written."""
    written_from(trained_bundle, monkeypatch)
    return trained_bundle


@pytest.fixture(scope="session")
def int8_bundle(
    tmp_path_factory: pytest.TempPathFactory, pointed_model: Path, trained_bundle: Path
) -> Path:
    """`pointed_model` with 8-bit weights, its points calibrated anew."""
    from de3bert.export.bundle import export_model

    def build(out: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            written_from(trained_bundle, patch)
            export_model(pointed_model, out, int8=True)

    return once(tmp_path_factory, "bundle-int8", build)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def apart(first: Trace, second: Trace) -> float:
    """The largest difference of any entropy or distance."""
    import numpy as np

    from de3bert.exits import signals

    entropies = [signals.entropy(each.logits.astype(np.float64)) for each in (first, second)]
    largest = float(np.abs(entropies[0] - entropies[1]).max())
    assert (first.distances is None) == (second.distances is None)
    if first.distances is not None and second.distances is not None:
        largest = max(largest, float(np.abs(first.distances - second.distances).max()))
    return largest
