"""Graphs that differ in their weights alone are traced once in a process.

Layers 2 to M of an encoder mostly run the same program, and so do the models of a search or of a
study. Tracing a program takes seconds; putting other weights into what was traced takes
hundredths. Whether two stretches are one program is asked twice: here of their modules (classes,
settings, how they are called), and of numbers when the bundle is compared with the model; one that
disagrees is written again, every graph traced separately (`bundle.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from torch import Tensor, nn

from de3bert.export.graphs import capture, finish

__all__ = ["Templates", "module_kind"]

KEPT = 64  # traced programs; without weights each takes some hundred kilobytes
OWN = {"training", "layer_idx", "layer_id", "layer_index", "index"}  # may differ between layers
Roles = Mapping[str, Tensor]


@dataclass(frozen=True)
class Asked:
    """What a graph is made of; see `make_graph`."""

    module: nn.Module
    arguments: Sequence[Any]
    shapes: Sequence[Any]
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclass(frozen=True)
class Template:
    """A traced program without weights, and the role of each weight in it."""

    graph: ir.Model
    roles: Mapping[str, str]  # name of an initializer -> role


TRACED: OrderedDict[Hashable, Template] = OrderedDict()  # the one used last is at the end


@dataclass
class Templates:
    """Graphs of one model, from programs that were traced before where there are such.

    Attributes:
        program: what else of the model the graphs depend on: equal for models whose graphs may
            differ in their weights alone.
        use: False traces every graph separately.
        filled: how many graphs were made from one that had been traced before.
    """

    program: Hashable
    use: bool = True
    filled: int = 0

    def make(self, asked: Asked, kind: Hashable, roles: Roles) -> ir.Model:
        """The graph of a module, from a traced one of the same kind where there is one.

        Args:
            kind: equal for modules of this model that run the same program with other weights.
            roles: what a weight is to such a program -> the weight in this module.
        """
        key = (self.program, kind, tuple(asked.inputs))
        if self.use and key in TRACED:
            TRACED.move_to_end(key)
            filled = self._filled(TRACED[key], asked, roles)
            if filled is not None:
                self.filled += 1
                return filled
        traced = capture(asked.module, asked.arguments, asked.shapes, asked.inputs, asked.outputs)
        if self.use:
            _remember(key, traced, asked.module, roles)
        return finish(traced, asked.inputs, asked.outputs)

    @staticmethod
    def _filled(template: Template, asked: Asked, roles: Roles) -> ir.Model | None:
        """The traced graph with this module's weights; None where some of them are missing."""
        model = template.graph.clone()
        graph = model.graph
        for name, role in template.roles.items():
            weight, value = roles.get(role), graph.initializers[name]
            if weight is None or list(weight.shape) != list(value.shape or ()):
                return None
            value.const_value = ir.tensor(weight.detach().cpu().numpy(), name=name)
        given = {value.name: value for value in graph.outputs}
        if not set(asked.outputs) <= set(given):
            return None
        graph.outputs[:] = [given[name] for name in asked.outputs]
        return finish(model, asked.inputs, asked.outputs)


def _remember(key: Hashable, traced: ir.Model, module: nn.Module, roles: Roles) -> None:
    """Keeps the program for graphs to come, unless it holds a weight that nobody could replace."""
    role_of = {id(weight): role for role, weight in roles.items()}
    weights = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    held = [name for name in traced.graph.initializers if name in weights]
    if any(id(weights[name]) not in role_of for name in held):
        return
    graph = traced.clone()
    for name in held:
        graph.graph.initializers[name].const_value = None
    TRACED[key] = Template(graph, {name: role_of[id(weights[name])] for name in held})
    while len(TRACED) > KEPT:
        TRACED.popitem(last=False)


def module_kind(module: nn.Module) -> Hashable:
    """Equal for modules that compute the same with other weights: classes, settings and shapes."""
    settings = tuple(
        (name, value)
        for name, value in sorted(vars(module).items())
        if name not in OWN and isinstance(value, int | float | str | bool | None)
    )
    weights = tuple(
        (name, tuple(weight.shape), str(weight.dtype))
        for name, weight in (*module.named_parameters(), *module.named_buffers())
    )
    inner = tuple((name, module_kind(child)) for name, child in module.named_children())
    return type(module).__qualname__, settings, weights, inner
