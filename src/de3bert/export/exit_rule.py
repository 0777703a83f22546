"""A rule as nodes of a graph: at each exit, may the row leave?

What is the same at all exits is computed once, before the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from de3bert.exits.rule_form import RuleForm
from de3bert.export.nodes import BOOL, DOUBLE, INT64, Nodes, Value, typed
from de3bert.export.signal_nodes import SIGNAL_NODES, Exit, distance_ratio, entropy, fused

__all__ = ["Exit", "ExitRule", "Step"]


@dataclass(frozen=True)
class Step:
    """What a rule says at one exit.

    Attributes:
        leave: one truth value.
        signal: what it was decided by, (1,) float64.
        run: for rules that count, the exits in a row that met the condition, (1,) int64.
        answer: for patience, the class that this exit predicts, (1,) int64.
    """

    leave: Value
    signal: Value
    run: Value | None = None
    answer: Value | None = None


class ExitRule:
    """Writes one rule into the graphs of one model, exit after exit.

    Args:
        nodes: of the graph that all others are nested in.
        inputs: the numbers of the rule, by name.
        limits: for each internal exit, the layer of the exit behind it.
        exact: EDR is computed also where its bound decides, for a record of it.
    """

    def __init__(
        self,
        form: RuleForm,
        nodes: Nodes,
        inputs: Mapping[str, Value],
        limits: Sequence[int],
        *,
        exact: bool = False,
    ) -> None:
        self.form = form
        self.exact, self.exits = exact, len(limits)
        # A row goes no deeper where the next exit lies beyond its limit: there, any signal passes.
        self.last = nodes.op("Less", inputs["max_layers"], nodes.constant(limits, np.int64))
        if form.signal is not None:
            self.threshold = nodes.cast(inputs["threshold"], DOUBLE)
        if form.counted:
            none = nodes.constant([0], np.int64)
            self.patience = self._at_exits(nodes, none, inputs["patience"])
        else:
            self.thresholds = self._at_exits(nodes, self._anything(nodes), self.threshold)
        if form.signal == "edr":
            self._prepare_edr(nodes, nodes.cast(inputs["lambda"], DOUBLE))

    def _anything(self, nodes: Nodes) -> Value:
        """A threshold that every signal meets."""
        return nodes.constant([-math.inf if self.form.rising else math.inf])

    def _at_exits(self, nodes: Nodes, forced: Value, usual: Value) -> Sequence[Value]:
        """A number for every exit: another where the row has to leave."""
        return nodes.split(nodes.op("Where", self.last, forced, usual), self.exits)

    def step(self, nodes: Nodes, number: int, seen: Exit, before: Step | None) -> Step:
        """Asks at the internal exit `number`, from 0; `before` is what the last one said."""
        if self.form.signal is None:
            return self._agreement(nodes, number, seen, before)
        if self.form.signal == "edr":
            passed, signal = self._edr(nodes, number, seen)
        else:
            signal = SIGNAL_NODES[self.form.signal](nodes, seen)
            passed = nodes.op(self._passes, signal, self._threshold(number))
        if not self.form.counted:
            return Step(passed, signal)
        run = nodes.cast(passed, INT64)
        if before is not None:
            run = nodes.op("Mul", run, self._one_more(nodes, before))
        return Step(self._long_enough(nodes, run, number), signal, run)

    def _agreement(self, nodes: Nodes, number: int, seen: Exit, before: Step | None) -> Step:
        """Patience: a run of exits that answer alike. The first has nothing to agree with."""
        answer = nodes.op("ArgMax", seen.logits, axis=1, keepdims=0)
        run = nodes.constant([0], np.int64)
        if before is not None:
            same = nodes.cast(nodes.op("Equal", answer, before.answer), INT64)
            run = nodes.op("Mul", same, self._one_more(nodes, before))
        leave = self._long_enough(nodes, run, number)
        return Step(leave, nodes.cast(run, DOUBLE), run, answer)

    def _one_more(self, nodes: Nodes, before: Step) -> Value:
        return nodes.op("Add", before.run, nodes.constant([1], np.int64))

    def _long_enough(self, nodes: Nodes, run: Value, number: int) -> Value:
        return nodes.op("GreaterOrEqual", run, self.patience[number])

    @property
    def _passes(self) -> str:
        return "Greater" if self.form.rising else "Less"

    def _threshold(self, number: int) -> Value:
        return self.threshold if self.form.counted else self.thresholds[number]

    def _prepare_edr(self, nodes: Nodes, weight: Value) -> None:
        """EDR < tau is settled by E < tau / (w + 1 - tau w), since DR <= 1; for tau > 1 by nothing.

        Distances are computed where E is not below that bound, and never for w = 0.
        """
        one, beyond = nodes.constant(1.0), nodes.constant(math.inf)
        self.weight, self.whole = weight, nodes.op("Add", weight, one)
        part = nodes.op("Sub", self.whole, nodes.op("Mul", self.threshold, weight))
        bound = nodes.op("Div", self.threshold, part)
        bound = nodes.op("Where", nodes.op("Greater", self.threshold, one), beyond, bound)
        self.fused = nodes.op("Greater", weight, nodes.constant(0.0))
        self.ask_from = nodes.op("Where", self.fused, bound, beyond)
        self.bounds: Sequence[Value] = [bound] * self.exits
        if not self.form.counted:
            self.bounds = self._at_exits(nodes, self._anything(nodes), bound)

    def _edr(self, nodes: Nodes, number: int, seen: Exit) -> tuple[Value, Value]:
        """Whether EDR passes, and its value; where the bound decides and nobody records it, E."""
        local = entropy(nodes, seen)
        ask = self.fused if self.exact else nodes.op("GreaterOrEqual", local, self.ask_from)
        asked, spared = (Nodes.of_branch(f"{nodes.prefix}/{name}") for name in ("asked", "spared"))
        value = fused(asked, local, distance_ratio(asked, seen), self.weight, self.whole)
        passed = asked.op("Less", value, self._threshold(number))
        asked.graph.outputs[:] = [typed(passed, BOOL, 1), typed(value, DOUBLE, 1)]
        passed = spared.op("Less", local, self.bounds[number])
        value = spared.op("Identity", local)
        spared.graph.outputs[:] = [typed(passed, BOOL, 1), typed(value, DOUBLE, 1)]
        made = nodes.either(ask, asked.graph, spared.graph)
        return made[0], made[1]
