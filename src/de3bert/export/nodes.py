"""Adding nodes by hand to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from de3bert.export.graphs import initializer

__all__ = ["BOOL", "DOUBLE", "FLOAT", "INT64", "Nodes", "Value", "of_one_row", "typed"]

Value: TypeAlias = ir.Value
BOOL, DOUBLE = ir.DataType.BOOL, ir.DataType.DOUBLE
FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


class Nodes:
    """Adds nodes and constants to a graph, at its end. No two graphs use a name twice.

    Args:
        prefix: begins the names of all values that it adds.
    """

    def __init__(self, graph: ir.Graph, prefix: str) -> None:
        self.graph, self.prefix = graph, prefix
        self._tape = ir.tape.Tape(graph)
        self._count = 0

    @classmethod
    def of_branch(cls, name: str) -> Nodes:
        """Of a new graph that reads what is around it."""
        return cls(ir.Graph([], [], nodes=[], name=name), name)

    def op(self, kind: str, *inputs: Value | None, **attributes: int) -> Value:
        """The output of a new node."""
        return self.ops(kind, inputs, 1, **attributes)[0]

    def ops(
        self, kind: str, inputs: Sequence[Value | None], outputs: int, **attributes: int
    ) -> Sequence[Value]:
        """The outputs of a new node that has several."""
        made = self._tape.op_multi_out(kind, inputs, attributes or None, num_outputs=outputs)
        return self._named(made, kind)

    def cast(self, value: Value, dtype: ir.DataType) -> Value:
        return self.op("Cast", value, to=int(dtype))

    def split(self, value: Value, parts: int) -> Sequence[Value]:
        """The entries of a vector, (parts,), each (1,)."""
        return self.ops("Split", [value], parts, axis=0, num_outputs=parts)

    def either(self, condition: Value, then: ir.Graph, other: ir.Graph) -> Sequence[Value]:
        """What one of two branches gives, of the types and shapes of the first one's outputs."""
        branches = {"then_branch": then, "else_branch": other}
        like = then.outputs
        made = self._tape.op_multi_out("If", [condition], branches, num_outputs=len(like))
        for each, example in zip(made, like, strict=True):
            each.type, each.shape = example.type, example.shape
        return self._named(made, "If")

    def call(self, function: ir.Function, inputs: Sequence[Value]) -> Sequence[Value]:
        """What a function gives, of the types and shapes of its outputs."""
        made = self._tape.op_multi_out(
            function.name, inputs, domain=function.domain, num_outputs=len(function.outputs)
        )
        for each, example in zip(made, function.outputs, strict=True):
            each.type, each.shape = example.type, of_one_row(example.shape)
        return self._named(made, function.name)

    def constant(self, numbers: object, dtype: type = np.float64) -> Value:
        return initializer(self.graph, self._name("constant"), np.array(numbers, dtype=dtype))

    def _named(self, values: Sequence[Value], kind: str) -> Sequence[Value]:
        for value in values:
            value.name = self._name(kind)
        return values

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{self.prefix}/{kind}_{self._count}"


def typed(value: Value, dtype: ir.DataType, *shape: int | str) -> Value:
    """The value, with a type and a shape."""
    value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
    return value


def of_one_row(shape: ir.Shape | None) -> ir.Shape | None:
    """The shape with its axis of rows fixed."""
    return shape and ir.Shape([1 if str(size) == "rows" else size for size in shape])
