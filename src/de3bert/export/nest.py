"""A bundle as one ONNX graph: the stretches nested in one another, an `If` at every exit.

Two properties of ONNX Runtime give it its form.

- The weights of a product are laid out for speed only where the graph that has the product has
  them too, so each branch must hold its own. With all weights at the top, a model with exits takes
  a third longer.
- A graph is copied at every level that it is nested in. So what is nested is a call of a function,
  a few bytes, which is put in place when the file is loaded. With 12 layers of 384 that takes
  250 MB of memory in place of 1,150.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from de3bert.exits.rule_form import RuleForm
from de3bert.export.exit_rule import ExitRule, Step
from de3bert.export.nodes import FLOAT, INT64, Nodes, Value, of_one_row, typed
from de3bert.export.signal_nodes import Exit
from de3bert.runtime.manifest import Graph

__all__ = ["Nest"]

DOMAIN = "de3bert"  # of the functions
FIRST = "first"  # begins the names of the values of the first stretch
MASK, IDS = "attention_mask", "input_ids"
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
    functions: list[ir.Function] = field(default_factory=list)
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
        nodes = Nodes(top, "rule")
        ends = {str(value.name): value for value in top.outputs}
        _forget_padding(top)
        _fill_mask(top)
        _set_apart(top)
        tokens = {str(value.name): value for value in top.inputs}
        inputs = {name: _number(name, defaults[name]) for name in self.form.inputs}
        top.inputs.extend(inputs.values())
        limits = [graph.last for graph in self.graphs[1:]]
        rule = ExitRule(self.form, nodes, inputs, limits, exact=self.record)
        top.outputs[:] = self._go_on(nodes, 0, rule, tokens, ends, None)
        for value, name in zip(top.outputs, self._outputs, strict=True):
            value.name = name
        if not required:
            for value in inputs.values():
                top.register_initializer(value)
        model.functions.update({each.identifier(): each for each in self.functions})
        model.opset_imports[DOMAIN] = 1
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
        ends: Mapping[str, Value],
        before: Step | None,
    ) -> Sequence[Value]:
        """The outputs from an exit on: leave there, or run what comes after it.

        Args:
            nodes: of the graph that the exit is in.
            given: what the stretch has read; `ends` is what it gave.
            before: what the rule said at the exit before.
        """
        layer, logits = self.graphs[number].last, typed(ends["logits"], FLOAT, 1, self.classes)
        self.logits.append(logits)
        if number == len(self.graphs) - 1:
            return self._answer(nodes, logits, layer)
        step = rule.step(nodes, number, self._exit(number, ends), before)
        self.signals.append(step.signal)
        leave = Nodes.of_branch(f"leave_{layer:02d}")
        leave.graph.outputs[:] = self._answer(leave, leave.op("Identity", logits), layer)
        passed = {**given, **{CARRIED.get(name, name): value for name, value in ends.items()}}
        inner = Nodes.of_branch(f"after_{layer:02d}")
        following = self._stretch(inner, number + 1, passed)
        inner.graph.outputs[:] = self._go_on(inner, number + 1, rule, passed, following, step)
        return nodes.either(step.leave, leave.graph, inner.graph)

    def _exit(self, number: int, ends: Mapping[str, Value]) -> Exit:
        graph = self.graphs[number]
        distances = None
        if self.form.needs_distances and graph.distances is not None:
            function = self._function(graph.distances)
            distances = (function, ends["pooled"])
        return Exit(ends["logits"], ends.get("certainty"), distances)

    def _stretch(self, nodes: Nodes, number: int, given: Mapping[str, Value]) -> dict[str, Value]:
        """What a later stretch gives, which reads what the ones around it gave."""
        graph = self.graphs[number]
        function = self._function(graph.file)
        made = nodes.call(function, [given[str(value.name)] for value in function.inputs])
        return {str(own.name): value for own, value in zip(function.outputs, made, strict=True)}

    def _function(self, file: str) -> ir.Function:
        """The graph of a file as a function, with its weights as constants."""
        graph = ir.load(self.folder / file).graph
        _forget_padding(graph)
        for value in [each for each in graph.inputs if not each.uses()]:
            graph.inputs.remove(value)
        constants = []
        for value in list(graph.initializers.values()):
            node = ir.node("Constant", [], {"value": value.const_value})
            graph.initializers.pop(str(value.name))
            node.outputs[0].name, node.outputs[0].type = value.name, value.type
            ir.convenience.replace_all_uses_with(value, node.outputs[0])
            constants.append(node)
        graph.insert_before(graph[0], constants)
        made = ir.Function(DOMAIN, Path(file).stem.replace("-", "_"), graph=graph, attributes=[])
        self.functions.append(made)
        return made

    def _answer(self, nodes: Nodes, logits: Value, layer: int) -> list[Value]:
        """The outputs where the row leaves."""
        number = nodes.op("Identity", nodes.constant(layer, np.int64))
        outputs = [typed(logits, FLOAT, 1, self.classes), typed(number, INT64)]
        return [*outputs, *self._recorded(nodes)] if self.record else outputs

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


def _number(name: str, default: float | int) -> Value:
    """An input of the rule, which is one number."""
    dtype = NUMBERS[name]
    tensor = ir.tensor(np.array(default, dtype=dtype.numpy()), name=name)
    return typed(ir.Value(name=name, const_value=tensor), dtype)


def _forget_padding(graph: ir.Graph) -> None:
    """One row has no padding, so fused attention needs no mask."""
    for node in list(graph):
        if node.op_type == FUSED and len(node.inputs) > PADDING:
            node.replace_input_with(PADDING, None)


def _fill_mask(top: ir.Graph) -> None:
    """Whatever else reads a mask gets one of ones."""
    mask = next((value for value in top.inputs if value.name == MASK), None)
    if mask is None:
        return
    ids = next(value for value in top.inputs if value.name == IDS)
    shape = ir.node("Shape", [ids])
    ones = ir.node("ConstantOfShape", [shape.outputs[0]], {"value": ir.tensor([1])})
    top.insert_before(top[0], [shape, ones])
    ir.convenience.replace_all_uses_with(mask, typed(ones.outputs[0], INT64, 1, "tokens"))
    top.inputs.remove(mask)


def _set_apart(top: ir.Graph) -> None:
    """Gives the values of the first stretch other names than the outputs have, and one row."""
    values = [*top.initializers.values(), *(value for node in top for value in node.outputs)]
    for value in values:
        value.name = f"{FIRST}/{value.name}"
    for value in (*values, *top.inputs):
        value.shape = of_one_row(value.shape)
