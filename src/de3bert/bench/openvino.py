"""The plain graph compiled by OpenVINO, tuned for latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.contender import CONTENDERS, Contender, Maker, Static
from de3bert.bench.graphs import plain_file
from de3bert.bench.material import Material
from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error

__all__ = ["compiled"]


@CONTENDERS.register("openvino")
def compiled(material: Material, name: str) -> Maker:
    """The same file as `ort` runs, in Intel's runtime, on as many threads."""
    library = _library()

    def make() -> Contender:
        return Static(
            name=name,
            precision="fp32",
            layers=material.depth,
            depth=material.depth,
            label_names=material.label_names,
            encode=material.encoder,
            logits=_compiled_logits(library, material, plain_file(material)),
            pool="openvino",
        )

    return make


def _library() -> ModuleType:
    try:
        import openvino
    except ImportError as error:
        raise De3Error(
            "The contender openvino needs a package that is not installed. Install it with: "
            "pip install 'de3bert[openvino]'"
        ) from error
    return openvino


def _compiled_logits(
    library: ModuleType, material: Material, path: Path
) -> Callable[[Sequence[TokenRow]], NDArray[np.float32]]:
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": material.threads,
        # Some processors would silently run bf16, which is another contest.
        "INFERENCE_PRECISION_HINT": "f32",
    }
    model = library.Core().compile_model(str(path), "CPU", settings)
    request = model.create_infer_request()
    names = [given.any_name for given in model.inputs]
    pad = material.encoder.pad

    def logits(rows: Sequence[TokenRow]) -> NDArray[np.float32]:
        padded = pad(rows)
        return request.infer({each: padded[each] for each in names})[0]

    return logits
