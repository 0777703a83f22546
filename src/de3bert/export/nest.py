"""A whole bundle as one ONNX graph: the stretches nested in one another, an `If` at every exit.

Each branch holds its own weights. ONNX Runtime lays the weights of a product out for speed only
where the graph that has the product has them too; with all weights at the top a model with exits
takes a third longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from de3bert.exits.rule_form import RuleForm
from de3bert.export.exit_rule import Exit, ExitRule, Step
from de3bert.export.nodes import FLOAT, INT64, Nodes, Value, connect, typed
from de3bert.runtime.manifest import Graph

__all__ = ["Nest"]

MASK = "attention_mask"
FUSED = "MultiHeadAttention"
PADDING = 4  # the place of the padding among the inputs of `FUSED`
CARRIED = {"hidden_out": "hidden", "memory_out": "memory"}
NUMBERS = {"threshold": FLOAT, "lambda": FLOAT, "patience": INT64, "max_layers": INT64}


@dataclass
class Nest:
    """Nests the graphs of a bundle.

    Args:
        folder: the bundle.
        graphs: its stretches.
        form: the rule that is written into the graph.
        classes: how many there are.
        record: whether what every exit said is given too.
    """

    folder: Path
    graphs: Sequence[Graph]
    form: RuleForm
    classes: int
    record: bool = False
    logits: list[Value] = field(default_factory=list)  # of the exits so far
    signals: list[Value] = field(default_factory=list)

    def build(self, defaults: Mapping[str, float | int], *, required: bool = False) -> ir.Model:
        """The model.

        Args:
            defaults: the numbers of the rule when none are given.
            required: the numbers are plain inputs, without a default.
        """
        model = ir.load(self.folder / self.graphs[0].file)
        top = model.graph
        top.name = _name(self.graphs[0])
        _forget_padding(top)
        nodes = Nodes(top)
        inputs = {name: _number(name, defaults[name]) for name in self.form.inputs}
        given = {str(value.name): value for value in top.inputs}
        top.inputs.extend(inputs.values())
        rule = ExitRule(
            self.form, nodes, inputs, [graph.last for graph in self.graphs[1:]], exact=self.record
        )
        self._go_on(nodes, 0, rule, given, None)
        _name_apart(model)
        if not required:
            for value in inputs.values():
                top.register_initializer(value)
        for value, name in zip(top.outputs, self._outputs, strict=True):
            value.name = name
        RemoveUnusedNodesPass()(model)
        return model

    @property
    def _outputs(self) -> list[str]:
        return ["logits", "exit_layer", *(["exit_logits", "exit_signals"] if self.record else [])]

    def _go_on(
        self,
        nodes: Nodes,
        number: int,
        rule: ExitRule,
        given: Mapping[str, Value],
        before: Step | None,
    ) -> None:
        """The exit at the end of a stretch: leave, or run what is nested here.

        Args:
            nodes: of the stretch, whose outputs become the answer.
            given: what later stretches may read of earlier ones.
            before: what the rule said at the exit before.
        """
        graph = nodes.graph
        ends = {str(value.name): value for value in graph.outputs}
        layer = self.graphs[number].last
        logits = typed(ends.pop("logits"), FLOAT, 1, self.classes)
        self.logits.append(logits)
        if number == len(self.graphs) - 1:
            graph.outputs[:] = self._answer(nodes, logits, layer)
            return
        step = rule.step(nodes, number, self._exit(number, logits, ends), before)
        self.signals.append(step.signal)
        leave = Nodes(ir.Graph([], [], nodes=[], name=f"leave_{layer:02d}"))
        leave.graph.outputs[:] = self._answer(leave, leave.op("Identity", logits), layer)
        carried = {CARRIED.get(name, name): value for name, value in ends.items()}
        inner = self._nested(number + 1, {**given, **carried})
        self._go_on(Nodes(inner), number + 1, rule, {**given, **carried}, step)
        graph.outputs[:] = nodes.either(step.leave, leave.graph, inner, leave.graph.outputs)

    def _exit(self, number: int, logits: Value, ends: Mapping[str, Value]) -> Exit:
        distances = None
        file = self.graphs[number].distances
        if self.form.needs_distances and file is not None:
            distances = ir.load(self.folder / file).graph
            distances.name = f"distances_{self.graphs[number].last:02d}"
        return Exit(logits, ends.get("certainty"), ends.get("pooled"), distances)

    def _nested(self, number: int, given: Mapping[str, Value]) -> ir.Graph:
        """A later stretch, which reads what the ones around it have computed."""
        graph = ir.load(self.folder / self.graphs[number].file).graph
        _forget_padding(graph)
        graph.name = _name(self.graphs[number])
        connect(graph, given)
        return graph

    def _answer(self, nodes: Nodes, logits: Value, layer: int) -> list[Value]:
        """The outputs where the row leaves."""
        outputs = [
            typed(logits, FLOAT, 1, self.classes),
            typed(nodes.op("Constant", value_int=layer), INT64),
        ]
        if self.record:
            outputs += self._recorded(nodes)
        return outputs

    def _recorded(self, nodes: Nodes) -> list[Value]:
        """(exits, classes) and (exits,): what the exits so far said, NaN for all others."""
        exits, ran, asked = len(self.graphs), len(self.logits), len(self.signals)
        logits, signals = list(self.logits), list(self.signals)
        if exits > ran:
            blank = np.full((exits - ran, self.classes), np.nan)
            logits.append(nodes.constant(blank, np.float32))
        signals.append(nodes.constant(np.full(exits - asked, np.nan)))
        values = nodes.op("Concat", *logits, axis=0)
        asked_for = nodes.cast(nodes.op("Concat", *signals, axis=0), FLOAT)
        return [typed(values, FLOAT, exits, self.classes), typed(asked_for, FLOAT, exits)]


def _name(graph: Graph) -> str:
    return f"layers_{graph.first:02d}_{graph.last:02d}"


def _number(name: str, default: float | int) -> Value:
    """An input of the rule, which is one number."""
    dtype = NUMBERS[name]
    tensor = ir.tensor(np.array(default, dtype=dtype.numpy()), name=name)
    return typed(ir.Value(name=name, const_value=tensor), dtype)


def _forget_padding(graph: ir.Graph) -> None:
    """One row has no padding: fused attention gets no mask, whatever else reads one gets ones."""
    for node in list(graph):
        if node.op_type == FUSED and len(node.inputs) > PADDING:
            node.replace_input_with(PADDING, None)
    mask = next((value for value in graph.inputs if value.name == MASK), None)
    if mask is None:
        return
    ids = next(value for value in graph.inputs if value.name == "input_ids")
    shape = ir.node("Shape", [ids])
    ones = ir.node("ConstantOfShape", [shape.outputs[0]], {"value": ir.tensor([1])})
    graph.insert_before(graph[0], [shape, ones])
    for node, name in ((shape, "shape_of_ids"), (ones, "no_padding")):
        node.outputs[0].name = name
    ir.convenience.replace_all_uses_with(mask, typed(ones.outputs[0], INT64, 1, "tokens"))
    graph.inputs.remove(mask)


def _name_apart(model: ir.Model) -> None:
    """Gives every value and node a name of its own, and every axis of rows its size, one."""
    graphs = [model.graph, *_inside(model.graph)]
    for graph in graphs:
        for number, node in enumerate(graph):
            node.name = f"{graph.name}/{node.op_type}_{number}"
        values = [*graph.initializers.values(), *(v for node in graph for v in node.outputs)]
        for value in values:
            value.name = f"{graph.name}/{value.name}"
        for value in (*values, *graph.inputs):
            _one_row(value)


def _inside(graph: ir.Graph) -> list[ir.Graph]:
    """All graphs nested in one."""
    found = []
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                found += [attribute.as_graph(), *_inside(attribute.as_graph())]
    return found


def _one_row(value: Value) -> None:
    if value.shape is not None:
        value.shape = ir.Shape([1 if str(size) == "rows" else size for size in value.shape])
