"""Saves the exporter its second trace of a program, more than half of its time.

It traces every program again to take apart the operators that ONNX has no counterpart of. A layer
of an encoder has hardly any, and those few are casts, checks and other names of operators that ONNX
has: they are rewritten here. A program with anything else goes the exporter's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

__all__ = ["lower_without_tracing", "lowered"]

aten = torch.ops.aten
CASTS = {aten.to.dtype, aten.to.device, aten.to.dtype_layout, aten.to.other}
CHECKS = {aten._assert_scalar.default, aten._assert_tensor_metadata.default}
VIEWS = {aten.detach_.default}  # nothing is differentiated: the tensor itself
OTHER_NAMES = {aten.__and__.Tensor: aten.bitwise_and.Tensor, aten.min.other: aten.minimum.default}


def lower_without_tracing() -> None:
    """Puts the short way before the exporter's own, once.

    A version of torch that is built otherwise is left unchanged.
    """
    from torch.onnx._internal.exporter import _decomp, _fx_passes

    whole: Any = getattr(_fx_passes, "decompose_with_registry", None)
    known: Any = getattr(_decomp, "get_onnx_implemented_overloads", None)
    if whole is None or known is None or hasattr(whole, "short"):
        return

    def short(program: ExportedProgram, registry: Any) -> ExportedProgram:
        made = lowered(program, known(registry))
        return whole(program, registry) if made is None else made

    short.short = True  # type: ignore[attr-defined]
    _fx_passes.decompose_with_registry = short


def lowered(program: ExportedProgram, known: Iterable[Any]) -> ExportedProgram | None:
    """The program in operators that are `known`; None, and the program unchanged, if it has others.

    Takes `program` over.
    """
    operators = set(known)
    plan: list[tuple[fx.Node, Callable[[fx.Node], None]]] = []
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target in operators:
            continue
        step = _step(node)
        if step is None:
            return None
        plan.append((node, step))
    for node, step in plan:
        step(node)
    program.graph.lint()
    program.graph_module.recompile()
    return program


def _step(node: fx.Node) -> Callable[[fx.Node], None] | None:
    """How a node is rewritten; None when that is not known."""
    if node.target in CHECKS:
        return _erase
    if node.target in VIEWS and all(user.op != "output" for user in node.users):
        return _pass_on
    if node.target in OTHER_NAMES:
        return _rename
    if node.target in CASTS:
        # What a program gives out is also listed by its name, beside the graph: such a node stays.
        idle = _dtype(node) == _dtype(node.args[0])
        return _pass_on if idle and all(user.op != "output" for user in node.users) else _cast
    return None


def _dtype(node: Any) -> torch.dtype:
    made: torch.dtype = node.meta["val"].dtype
    return made


def _erase(node: fx.Node) -> None:
    node.graph.erase_node(node)


def _pass_on(node: fx.Node) -> None:
    (source, *_) = node.args
    assert isinstance(source, fx.Node)
    node.replace_all_uses_with(source)
    node.graph.erase_node(node)


def _rename(node: fx.Node) -> None:
    node.target = OTHER_NAMES[node.target]


def _cast(node: fx.Node) -> None:
    node.args, node.kwargs = (node.args[0],), {"dtype": _dtype(node)}
    node.target = aten._to_copy.default
