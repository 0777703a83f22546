"""The plain graph compiled by OpenVINO, tuned for latency."""

from __future__ import annotations

from de3bert.bench.contender import CONTENDERS, Contender, Maker, static
from de3bert.bench.graphs import plain_file
from de3bert.bench.material import BenchMaterial
from de3bert.runtime.backends import check_installed

__all__ = ["compiled"]


@CONTENDERS.register("openvino")
def compiled(material: BenchMaterial, name: str) -> Maker:
    """The same file as `ort` runs, in Intel's runtime, on as many threads."""
    check_installed("openvino")

    def make() -> Contender:
        from de3bert.runtime.openvino_graph import OpenVinoGraph

        graph = OpenVinoGraph(plain_file(material), material.threads)
        return static(
            material, name, lambda padded: graph.run(padded)[0], material.encoder, pool="openvino"
        )

    return make
