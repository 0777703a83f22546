from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures_trained import ToyData, once, toy_data, trained_model

from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.bench.run import graphs, hf, openvino
from de3bert.data.read import read_table
from de3bert.export.bundle import export_model
from de3bert.export.one_file import add_single
from de3bert.export.quantise import quantise_graph
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.manifest import Manifest

__all__ = ["toy_data", "trained_model"]

KEPT = (2, 4)  # few exits, few graphs: exporting is what takes the time here
assert graphs, (hf, openvino)  # they register the contenders


@pytest.fixture(scope="session")
def bundle(
    tmp_path_factory: pytest.TempPathFactory, trained_model: Path, toy_data: ToyData
) -> Path:
    """The trained model with its exits at layers 2 and 4, and a point called half."""

    def build(out: Path) -> None:
        export_model(trained_model, out, exits=KEPT)
        calibrate_model(out, "layers=1.4", "half", table=read_table(str(toy_data.calibration)))

    return once(tmp_path_factory, "bench-bundle", build)


@pytest.fixture(scope="session")
def int8_bundle(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Path:
    """The same bundle in 8 bits, made from its graphs: exporting again would take long."""

    def build(out: Path) -> None:
        shutil.copytree(bundle, out)
        manifest = Manifest.read(out)
        for graph in manifest.graphs:
            quantise_graph(out / graph.file)
        eight = manifest.model_copy(update={"precision": "int8", "single": None})
        eight.write(out)
        single, _ = add_single(out)
        eight.model_copy(update={"single": single}).write(out)

    return once(tmp_path_factory, "bench-int8", build)


@pytest.fixture(scope="session")
def material(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchMaterial]:
    made = BenchMaterial(load_bundle(bundle), None, tmp_path_factory.mktemp("graphs"))
    made.threads = 1  # of torch: tiny tensors on busy cores
    yield made
    made.close()


@pytest.fixture(scope="module")
def texts(toy_data: ToyData) -> list[str]:
    return read_table(str(toy_data.test)).texts[:60]
