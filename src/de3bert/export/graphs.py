"""One module as one straight graph, and the tidying that makes it lean.

At batch 1 every node costs some microseconds, whatever it computes: removing those that compute
nothing, and asking for query, key and value in one product, is worth a tenth of a small layer.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass
from torch import nn

from de3bert.export.lowering import lower_without_tracing

__all__ = ["ROWS", "TOKENS", "capture", "finish", "initializer", "make_graph"]

OPSET = 20  # the first with Gelu as one operator
ROWS = torch.export.Dim("rows")
TOKENS = torch.export.Dim("tokens")


def make_graph(
    module: nn.Module,
    arguments: Sequence[Any],
    shapes: Sequence[Any],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> ir.Model:
    """The module as an ONNX graph with dynamic rows and tokens."""
    traced = capture(module, arguments, shapes, inputs, outputs)
    return finish(traced, inputs, outputs)


def capture(
    module: nn.Module,
    arguments: Sequence[Any],
    shapes: Sequence[Any],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> ir.Model:
    """The graph as it is traced: nothing is folded yet, and weights have their names in `module`.

    This is where the time of an export goes, about a second for a layer of any size.
    """
    _remember_operators()
    lower_without_tracing()
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(),
            tuple(arguments),
            dynamo=True,
            dynamic_shapes=tuple(shapes),
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=OPSET,
            external_data=False,
            verbose=False,
            optimize=False,
        )
    assert program is not None  # None only when a file is written
    model: ir.Model = program.model
    return model


def finish(model: ir.Model, inputs: Sequence[str], outputs: Sequence[str]) -> ir.Model:
    """A captured graph with its constants folded, made lean. Takes `model` over.

    An input that is handed on unchanged is one value as captured, with the name of the output;
    folding puts an operator between the two and thinks of a name, so both are named again.
    """
    with _quiet():
        program = torch.onnx.ONNXProgram(model, None)
        program.optimize()
    made: ir.Model = program.model
    for values, names in ((made.graph.inputs, inputs), (made.graph.outputs, outputs)):
        for value, name in zip(values, names, strict=True):
            value.name = name
    tidy(made)
    return made


def tidy(model: ir.Model) -> None:
    """Removes reshapes that change nothing and merges products that share an input."""
    drop_idle_reshapes(model.graph)
    merge_products(model.graph)
    RemoveUnusedNodesPass()(model)
    for node in model.graph:
        node.metadata_props.clear()  # stack traces with the exporting machine's paths
    model.metadata_props.clear()
    model.graph.metadata_props.clear()


def drop_idle_reshapes(graph: ir.Graph) -> None:
    """A chain of reshapes that ends in the shape it began with is a detour."""
    for node in list(graph):
        if node.op_type != "Reshape":
            continue
        source = _source(node)
        end = node.outputs[0]
        if source is not node.inputs[0] and _same_shape(source, end):
            if end.is_graph_output():
                continue
            ir.convenience.replace_all_uses_with(end, source)


def _source(node: ir.Node) -> ir.Value:
    """The value at the beginning of a chain of reshapes."""
    value = node.inputs[0]
    assert value is not None
    producer = value.producer()
    while producer is not None and producer.op_type == "Reshape":
        value = producer.inputs[0]
        assert value is not None
        producer = value.producer()
    return value


def _same_shape(first: ir.Value, second: ir.Value) -> bool:
    if first.shape is None or second.shape is None:
        return False
    return [str(d) for d in first.shape] == [str(d) for d in second.shape]


def merge_products(graph: ir.Graph) -> None:
    """x A + a, x B + b, ... become one product x [A B ...] + [a b ...], split afterwards."""
    groups: dict[int, list[tuple[ir.Node, ir.Node]]] = defaultdict(list)
    for node in graph:
        pair = _linear(node)
        if pair is not None:
            groups[id(pair[0].inputs[0])].append(pair)
    for pairs in groups.values():
        if len(pairs) > 1:
            _merge(graph, pairs)


def _linear(node: ir.Node) -> tuple[ir.Node, ir.Node] | None:
    """(product, sum) of an x W + b with constant W (2-D) and b (1-D)."""
    if node.op_type != "MatMul" or _constant(node.inputs[1], 2) is None:
        return None
    uses = list(node.outputs[0].uses())
    if len(uses) != 1 or node.outputs[0].is_graph_output():
        return None
    adder = uses[0].node
    if adder.op_type != "Add" or adder.inputs[0] is not node.outputs[0]:
        return None
    return (node, adder) if _constant(adder.inputs[1], 1) is not None else None


def _constant(value: ir.Value | None, axes: int) -> Any:
    """The array of a constant with so many axes, or None."""
    if value is None or value.const_value is None or not value.is_initializer():
        return None
    array = value.const_value.numpy()
    return array if array.ndim == axes else None


def _merge(graph: ir.Graph, pairs: list[tuple[ir.Node, ir.Node]]) -> None:
    product, adder = pairs[0]
    name = adder.outputs[0].name
    weights = [_constant(pair[0].inputs[1], 2) for pair in pairs]
    biases = [_constant(pair[1].inputs[1], 1) for pair in pairs]
    widths = [array.shape[1] for array in weights]
    weight = initializer(graph, f"{name}.merged_weight", np.concatenate(weights, axis=1))
    bias = initializer(graph, f"{name}.merged_bias", np.concatenate(biases))
    sizes = initializer(graph, f"{name}.widths", np.array(widths, dtype=np.int64))
    whole = ir.node("MatMul", [product.inputs[0], weight])
    total = ir.node("Add", [whole.outputs[0], bias])
    parts = ir.node("Split", [total.outputs[0], sizes], {"axis": -1}, num_outputs=len(pairs))
    # Before the first of the old products: whatever reads one of the parts comes later.
    graph.insert_before(product, [whole, total, parts])
    for (_, old), part in zip(pairs, parts.outputs, strict=True):
        part.type, part.shape = old.outputs[0].type, old.outputs[0].shape
        ir.convenience.replace_all_uses_with(old.outputs[0], part)


def initializer(graph: ir.Graph, name: str, array: np.ndarray) -> ir.Value:
    value = ir.Value(name=name, const_value=ir.tensor(np.asarray(array, order="C"), name=name))
    value.dtype, value.shape = ir.DataType.from_numpy(array.dtype), ir.Shape(array.shape)
    graph.register_initializer(value)
    return value


def _remember_operators() -> None:
    """Keeps the exporter from parsing its whole library of operators for every graph.

    That is most of its time, three seconds a graph. A version of torch that is built otherwise is
    left unchanged.
    """
    from torch.onnx._internal.exporter import _registration

    registry: Any = getattr(_registration, "ONNXRegistry", None)
    made = getattr(registry, "from_torchlib", None)
    if made is not None and not hasattr(made, "cache_info"):
        registry.from_torchlib = staticmethod(functools.cache(made))


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns of optional packages that are not there; errors still come through."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
