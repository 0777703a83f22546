"""The plain graph compiled by OpenVINO, tuned for latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.contender import CONTENDERS, Contender, Maker, Static, of_units
from de3bert.bench.graphs import plain_file
from de3bert.bench.material import BenchMaterial
from de3bert.data.tokens import TokenRow
from de3bert.runtime.backends import check_installed

__all__ = ["compiled"]


@CONTENDERS.register("openvino")
def compiled(material: BenchMaterial, name: str) -> Maker:
    """The same file as `ort` runs, in Intel's runtime, on as many threads."""
    check_installed("openvino")

    def make() -> Contender:
        return Static(
            name=name,
            precision="fp32",
            layers=material.depth,
            depth=material.depth,
            task=material.task,
            label_names=material.label_names,
            encode=material.encoder,
            logits=_compiled_logits(material, plain_file(material)),
            pool="openvino",
        )

    return make


def _compiled_logits(
    material: BenchMaterial, path: Path
) -> Callable[[Sequence[TokenRow]], NDArray[np.float32]]:
    from de3bert.runtime.openvino_graph import OpenVinoGraph

    graph = OpenVinoGraph(path, material.threads)
    pad = material.encoder.pad

    def logits(rows: Sequence[TokenRow]) -> NDArray[np.float32]:
        padded = pad(rows)
        return of_units(graph.run(padded)[0], padded)

    return logits
