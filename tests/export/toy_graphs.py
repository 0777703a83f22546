"""A bundle without layers: what every exit says of a text is looked up by its one token.

With it a rule in a graph is tested on any logits and distances there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from de3bert.runtime.manifest import Graph

__all__ = ["Said", "write_toy_graphs"]

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass(frozen=True)
class Said:
    """What the exits say, float32.

    Attributes:
        logits: (rows, exits, classes).
        distances: (rows, exits - 1, classes).
        certainty: (rows, exits - 1).
    """

    logits: NDArray[np.float32]
    distances: NDArray[np.float32]
    certainty: NDArray[np.float32]


def write_toy_graphs(said: Said, folder: Path, layers: tuple[int, ...]) -> tuple[Graph, ...]:
    """The graphs of exits at `layers`, as an export would have written them."""
    graphs = []
    for number, layer in enumerate(layers):
        first = layers[number - 1] + 1 if number else 1
        final = number == len(layers) - 1
        file = f"layers-{first:02d}-{layer:02d}.onnx"
        _save(_stretch(said, number, final), folder / file)
        distances = None
        if not final:
            distances = f"distances-{layer:02d}.onnx"
            _save(_distances(said, number), folder / distances)
        graphs.append(Graph(first=first, last=layer, file=file, distances=distances))
    return tuple(graphs)


def _stretch(said: Said, number: int, final: bool) -> onnx.GraphProto:
    """The states, (rows, tokens, 1), are the token ids; `pooled` is the first of them."""
    classes = said.logits.shape[-1]
    table = {"said": said.logits[:, number]}
    ids = "input_ids" if number == 0 else "ids"
    nodes = [helper.make_node("Cast", ["hidden"], ["ids"], to=INT64)] if number else []
    nodes += [
        helper.make_node("Flatten", [ids], ["flat"]),
        helper.make_node("Gather", ["flat", "zero"], ["row"], axis=1),
        helper.make_node("Gather", ["said", "row"], ["logits"]),
    ]
    outputs = [("logits", ["rows", classes])]
    if not final:
        table["sure"] = said.certainty[:, number]
        nodes += [
            helper.make_node("Cast", [ids], ["hidden_out"], to=FLOAT),
            helper.make_node("Unsqueeze", ["row", "one"], ["column"]),
            helper.make_node("Cast", ["column"], ["pooled"], to=FLOAT),
            helper.make_node("Gather", ["sure", "row"], ["certainty"]),
        ]
        outputs += [("hidden_out", ["rows", "tokens"]), ("pooled", ["rows", 1])]
        outputs += [("certainty", ["rows"])]
    own = (ids, INT64) if number == 0 else ("hidden", FLOAT)
    inputs = [helper.make_tensor_value_info(*own, ["rows", "tokens"])]
    return helper.make_graph(
        nodes,
        "stretch",
        inputs,
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs],
        _constants({**table, "zero": np.array(0), "one": np.array([1])}),
    )


def _distances(said: Said, number: int) -> onnx.GraphProto:
    classes = said.logits.shape[-1]
    nodes = [
        helper.make_node("Cast", ["pooled"], ["ids"], to=INT64),
        helper.make_node("Squeeze", ["ids", "one"], ["row"]),
        helper.make_node("Gather", ["apart", "row"], ["distances"]),
    ]
    return helper.make_graph(
        nodes,
        "distances",
        [helper.make_tensor_value_info("pooled", FLOAT, ["rows", 1])],
        [helper.make_tensor_value_info("distances", FLOAT, ["rows", classes])],
        _constants({"apart": said.distances[:, number], "one": np.array([1])}),
    )


def _constants(arrays: dict[str, NDArray]) -> list[TensorProto]:
    return [numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name)
            for name, array in arrays.items()]  # fmt: skip


def _save(graph: onnx.GraphProto, path: Path) -> None:
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)
