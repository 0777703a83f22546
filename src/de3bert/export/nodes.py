"""Adding nodes by hand to a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from de3bert.export.graphs import initializer

__all__ = ["BOOL", "DOUBLE", "FLOAT", "INT64", "Nodes", "Value", "absorb", "connect", "typed"]

Value: TypeAlias = ir.Value
BOOL, DOUBLE = ir.DataType.BOOL, ir.DataType.DOUBLE
FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


class Nodes:
    """Adds nodes and constants to a graph, at its end."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self._tape = ir.tape.Tape(graph)
        self._count = 0

    def op(self, kind: str, *inputs: Value | None, **attributes: int) -> Value:
        """The output of a new node."""
        made: Value = self._tape.op(kind, inputs, attributes or None)
        return self._named(made, kind)

    def cast(self, value: Value, dtype: ir.DataType) -> Value:
        return self.op("Cast", value, to=int(dtype))

    def pair(self, kind: str, *inputs: Value, **attributes: int) -> Sequence[Value]:
        """The outputs of a new node that has two."""
        made = self._tape.op_multi_out(kind, inputs, attributes, num_outputs=2)
        return [self._named(each, kind) for each in made]

    def split(self, value: Value, parts: int) -> Sequence[Value]:
        """The entries of a vector, (parts,), each (1,)."""
        attributes = {"axis": 0, "num_outputs": parts}
        made = self._tape.op_multi_out("Split", [value], attributes, num_outputs=parts)
        return [self._named(each, "Split") for each in made]

    def either(
        self, condition: Value, then: ir.Graph, other: ir.Graph, like: Sequence[Value]
    ) -> Sequence[Value]:
        """What one of two branches gives, of the types and shapes of `like`."""
        branches = {"then_branch": then, "else_branch": other}
        made = self._tape.op_multi_out("If", [condition], branches, num_outputs=len(like))
        for each, example in zip(made, like, strict=True):
            self._named(each, "If").type, each.shape = example.type, example.shape
        return made

    def constant(self, numbers: object, dtype: type = np.float64) -> Value:
        self._count += 1
        return initializer(self.graph, f"constant_{self._count}", np.array(numbers, dtype=dtype))

    def _named(self, value: Value, kind: str) -> Value:
        self._count += 1
        value.name = f"{kind.lower()}_of_rule_{self._count}"
        return value


def typed(value: Value, dtype: ir.DataType, *shape: int | str) -> Value:
    """The value, with a type and a shape."""
    value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
    return value


def connect(graph: ir.Graph, given: Mapping[str, Value]) -> None:
    """Lets a graph read values from outside in place of its inputs."""
    for own in list(graph.inputs):
        ir.convenience.replace_all_uses_with(own, given[str(own.name)])
    graph.inputs.clear()


def absorb(graph: ir.Graph, other: ir.Graph) -> None:
    """Takes the nodes and constants of another graph over, to the end of this one."""
    for number, value in enumerate(list(other.initializers.values())):
        other.initializers.pop(str(value.name))
        value.name = f"{other.name}_{number}"
        graph.register_initializer(value)
    nodes = list(other)
    other.outputs.clear()
    other.remove(nodes)
    for number, node in enumerate(nodes):
        for place, value in enumerate(node.outputs):
            value.name = f"{other.name}_{node.op_type}_{number}_{place}"
        graph.append(node)
