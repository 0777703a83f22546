"""Graphs that differ in their weights alone are traced once.

Layers 2 to M of an encoder mostly run the same program. Tracing it takes seconds; putting the
weights of another layer into what was traced takes hundredths. Whether two stretches are one
program is asked twice: here of their modules (classes, settings, how they are called), and of
numbers when the bundle is compared with the model; one that disagrees is written again, every
graph traced separately (`bundle.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
from torch import Tensor, nn

from de3bert.export.graphs import capture, finish

__all__ = ["Templates", "module_kind"]

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


@dataclass
class Templates:
    """Traced graphs by what they compute.

    Attributes:
        use: False traces every graph separately.
        filled: how many graphs were made from one that had been traced before.
    """

    use: bool = True
    filled: int = 0
    _traced: dict[Hashable, tuple[ir.Model, dict[str, str]]] = field(default_factory=dict)

    def make(self, asked: Asked, kind: Hashable, roles: Roles) -> ir.Model:
        """The graph of a module, from a traced one of the same kind where there is one.

        Args:
            kind: equal for modules that run the same program with other weights.
            roles: what a weight is to such a program -> the weight in this module.
        """
        if self.use and kind in self._traced:
            filled = self._filled(*self._traced[kind], asked, roles)
            if filled is not None:
                self.filled += 1
                return filled
        traced = capture(asked.module, asked.arguments, asked.shapes, asked.inputs, asked.outputs)
        self._traced.setdefault(kind, (traced.clone(), _named(traced, asked.module, roles)))
        return finish(traced, asked.inputs, asked.outputs)

    @staticmethod
    def _filled(
        traced: ir.Model, named: Mapping[str, str], asked: Asked, roles: Roles
    ) -> ir.Model | None:
        """The traced graph with this module's weights; None where some of them are missing."""
        model = traced.clone()
        graph = model.graph
        for name, value in graph.initializers.items():
            if name not in named:
                continue  # a constant of the program
            weight = roles.get(named[name])
            if weight is None or list(weight.shape) != list(value.shape or ()):
                return None
            value.const_value = ir.tensor(weight.detach().cpu().numpy(), name=name)
        given = {value.name: value for value in graph.outputs}
        if not set(asked.outputs) <= set(given):
            return None
        graph.outputs[:] = [given[name] for name in asked.outputs]
        return finish(model, asked.inputs, asked.outputs)


def _named(traced: ir.Model, module: nn.Module, roles: Roles) -> dict[str, str]:
    """Name of an initializer -> the role of the weight that it is."""
    role_of = {id(weight): role for role, weight in roles.items()}
    weights = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    return {
        name: role_of[id(weights[name])]
        for name in traced.graph.initializers
        if name in weights and id(weights[name]) in role_of
    }


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
