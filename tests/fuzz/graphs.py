"""Changes of ONNX graphs that leave them graphs: what a stranger's exporter could have written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

__all__ = ["GraphChange", "changed_graph", "graph_changes"]


@dataclass(frozen=True)
class GraphChange:
    """What is done, and to which of the nodes, inputs, outputs or weights."""

    how: str
    at: int


HOW = (
    "external up", "external system file", "external canary", "external inside", "external endless",
    "rename input", "rename output", "drop output", "drop node", "drop weight", "another operator",
    "foreign operator", "another type", "huge shape", "negative shape", "swap inputs", "add input",
    "add output", "constant output", "escape in a name", "another version", "endless loop",
    "large tile",
)  # fmt: skip
LOCATIONS = {
    "up": "../outside.bin",
    "system file": "/etc/passwd",
    "canary": "{outside}/outside.bin",
    "inside": "weights.bin",
    "endless": "/dev/zero",
}
graph_changes = st.lists(
    st.builds(GraphChange, st.sampled_from(HOW), st.integers(0, 40)), min_size=1, max_size=2
)


def changed_graph(path: Path, changes: list[GraphChange]) -> bytes:
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    for change in changes:
        _apply(model, change)
    return model.SerializeToString()


def _apply(model: Any, change: GraphChange) -> None:
    graph, how = model.graph, change.how
    if how.startswith("external ") and graph.initializer:
        _move_out(graph.initializer[change.at % len(graph.initializer)], how.split(" ", 1)[1])
    elif how in ("rename input", "swap inputs", "another type", "huge shape", "negative shape"):
        _change_value(graph.input, change)
    elif how in ("rename output", "escape in a name"):
        found = graph.output[change.at % len(graph.output)]
        found.name = "\x1b[2Jx" if how.startswith("escape") else "other"
    elif how == "drop output" and len(graph.output):
        del graph.output[change.at % len(graph.output)]
    elif how == "drop weight" and len(graph.initializer):
        del graph.initializer[change.at % len(graph.initializer)]
    elif how == "another version":
        model.opset_import[0].version = change.at * 7
    elif how.startswith("add "):
        added = (graph.input if how == "add input" else graph.output).add()
        added.CopyFrom(graph.input[0])
        added.name = "more"
    elif graph.node:
        _change_node(graph, graph.node[change.at % len(graph.node)], how)


def _move_out(weight: Any, where: str) -> None:
    """Its numbers lie in another file."""
    weight.ClearField("raw_data")
    weight.data_location = 1
    for key, value in (("location", LOCATIONS[where]), ("offset", "0"), ("length", "30")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value


def _change_value(values: Any, change: GraphChange) -> None:
    if not values:
        return
    value = values[change.at % len(values)]
    if change.how == "rename input":
        value.name = "other"
    elif change.how == "swap inputs":
        other = values[(change.at + 1) % len(values)]
        value.name, other.name = other.name, value.name
    elif change.how == "another type":
        value.type.tensor_type.elem_type = change.at % 12
    else:
        for axis in value.type.tensor_type.shape.dim:
            axis.dim_value = -5 if change.how == "negative shape" else 10**12


def _change_node(graph: Any, node: Any, how: str) -> None:
    if how == "drop node":
        graph.node.remove(node)
    elif how == "another operator":
        node.op_type = "Softmax"
    elif how == "foreign operator":
        node.op_type, node.domain = "PyOp", "evil"
    elif how == "large tile":
        _tile(graph, node)
    elif how == "constant output":
        node.output[0] = graph.output[0].name
    elif how == "endless loop" and node.input:
        node.input[0] = node.output[0]


def _tile(graph: Any, node: Any) -> None:
    """A node that asks for more memory than there is."""
    import numpy
    from onnx import helper, numpy_helper

    shape = numpy_helper.from_array(numpy.array([1 << 40], dtype=numpy.int64), "tile_shape")
    graph.initializer.append(shape)
    made = helper.make_node("ConstantOfShape", ["tile_shape"], ["tiled"])
    graph.node.insert(0, made)
    if node.input:
        node.input[0] = "tiled"
