"""One graph, one ONNX Runtime session: what a model without exits costs in the same runtime.

All sessions share the process's one pool of threads; pools of their own would keep spinning while
the others are measured. They read texts with the bundle's tokenizer, the fastest there is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.contender import CONTENDERS, HALF, Contender, Maker, static
from de3bert.bench.material import BenchMaterial
from de3bert.errors import UsageError
from de3bert.runtime.sessions import open_session

if TYPE_CHECKING:
    from torch import nn

__all__ = ["first_layers", "fused", "fused_int8", "plain", "plain_file", "plain_int8"]


@CONTENDERS.register("ort")
def plain(material: BenchMaterial, name: str) -> Maker:
    """The plain model as torch exports it."""
    return _maker(material, name, plain_file)


@CONTENDERS.register("ort-int8")
def plain_int8(material: BenchMaterial, name: str) -> Maker:
    """The same graph with 8-bit weights, by ONNX Runtime's own quantiser."""
    return _maker(material, name, plain_int8_file, precision="int8")


@CONTENDERS.register("ort-fused")
def fused(material: BenchMaterial, name: str) -> Maker:
    """The best single graph our exporter can make: beside it, a bundle shows what cuts cost."""
    return _maker(material, name, fused_file)


@CONTENDERS.register("ort-fused-int8")
def fused_int8(material: BenchMaterial, name: str) -> Maker:
    """The same with 8-bit weights, quantised as those of an int8 bundle are."""
    return _maker(material, name, fused_int8_file, precision="int8")


@CONTENDERS.register(HALF)
def first_layers(material: BenchMaterial, name: str) -> Maker:
    """The first layers with the exit behind them: what a student of that depth would cost."""
    layer = material.depth // 2 if name == HALF else int(name.rpartition("-")[2])
    exits = material.exit_layers
    if layer not in exits:
        raise UsageError(
            f"The contender {name} needs an exit after layer {layer}. The model has exits after "
            f"layers {', '.join(map(str, exits))}."
        )

    def file(material: BenchMaterial) -> Path:
        from de3bert.bench.plain import FirstLayers

        trained = material.trained.model
        return _exported(material, f"layer-{layer}", lambda: FirstLayers(trained, layer))

    return _maker(material, f"layer-{layer}", file, layers=layer)


def plain_file(material: BenchMaterial) -> Path:
    """The graph of the plain model."""
    return _exported(material, "plain", lambda: material.plain)


def plain_int8_file(material: BenchMaterial) -> Path:
    return _quantised(material, "plain-int8", plain_file)


def fused_int8_file(material: BenchMaterial) -> Path:
    return _quantised(material, "fused-int8", fused_file)


def _quantised(material: BenchMaterial, name: str, file: Callable[[BenchMaterial], Path]) -> Path:
    """A copy of a graph with 8-bit weights."""
    from de3bert.export.quantise import quantise_graph

    def write(path: Path) -> None:
        shutil.copyfile(file(material), path)
        quantise_graph(path)

    return material.graph(name, write)


def fused_file(material: BenchMaterial) -> Path:
    """All layers in one graph, made the way the bundle's graphs were."""

    def write(path: Path) -> None:
        import onnx_ir as ir

        from de3bert.export.attention import FUSED, attention_as
        from de3bert.export.write import GraphWriter

        trained = material.trained
        kind = str(material.manifest.made.get("attention", FUSED))
        with attention_as(trained.model.encoder, kind):
            ir.save(GraphWriter(trained.model, trained.encoder).start(material.depth), path)

    return material.graph("fused", write)


def _exported(material: BenchMaterial, name: str, module: Callable[[], nn.Module]) -> Path:
    def write(path: Path) -> None:
        from de3bert.bench.plain import write_plain_graph

        encoder = material.trained.encoder
        rows = encoder.pad(encoder(material.task.samples[0][1:3]).rows)
        inputs = {each: rows[each] for each in material.manifest.inputs}
        write_plain_graph(module(), inputs, path)

    return material.graph(name, write)


def _maker(
    material: BenchMaterial,
    name: str,
    file: Callable[[BenchMaterial], Path],
    *,
    layers: int | None = None,
    precision: str = "fp32",
) -> Maker:
    """The graph is exported when the contender is made, not before."""

    def make() -> Contender:
        session = open_session(file(material))
        names = [given.name for given in session.get_inputs()]

        def run(padded: Mapping[str, Any]) -> NDArray[np.float32]:
            return session.run(["logits"], {each: padded[each] for each in names})[0]

        return static(material, name, run, material.encoder, precision=precision, layers=layers)

    return make
