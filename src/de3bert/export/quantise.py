"""Eight-bit weights: the big products of a graph in integers, quantised as they run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

__all__ = ["quantise_graph"]


def quantise_graph(path: Path) -> None:
    """Rewrites a graph file with int8 weights, one scale per output channel.

    Only products with constant weights inside the layers: they are nearly all of the time. Exits
    (Gemm) stay exact, for thresholds are compared with what they give; so do the embeddings.
    """
    model = onnx.load(path)
    # The exporter's shapes of inner values do not survive the change of types.
    del model.graph.value_info[:]
    # The quantiser turns every Gemm into a MatMul of this name before it looks at what to quantise.
    exits = [f"{node.name}_MatMul" for node in model.graph.node if node.op_type == "Gemm"]
    with _quiet():
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=exits,
            per_channel=True,
            # Products of 8-bit numbers are added in pairs as 16-bit ones on processors without
            # VNNI: with full range they saturate there, silently. Seven bits never do.
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={
                "MatMulConstBOnly": True,
                # Behind the fused attention the shapes and types are not inferred.
                "DefaultTensorType": onnx.TensorProto.FLOAT,
            },
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """The quantiser warns on the root logger of types it cannot infer, which we have told it."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
