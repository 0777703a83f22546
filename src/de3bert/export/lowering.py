"""Saves the exporter its second trace of a program, more than half of its time.

It traces every program again to take apart the operators that ONNX has no counterpart of. A layer
of an encoder has hardly any, and those few are casts, checks, other names of operators that ONNX
has, and operators in place whose tensor nobody else sees: they are rewritten here. A program with
anything else goes the exporter's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

__all__ = ["lower_without_tracing", "lowered"]

aten = torch.ops.aten
CASTS = {aten.to.dtype, aten.to.device, aten.to.dtype_layout, aten.to.other}
CHECKS = {aten._assert_scalar.default, aten._assert_tensor_metadata.default}
VIEWS = {aten.detach_.default}  # nothing is differentiated: the tensor itself
OTHER_NAMES: dict[Any, Any] = {
    aten.__and__.Tensor: aten.bitwise_and.Tensor,
    aten.min.other: aten.minimum.default,
}


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
    setattr(_fx_passes, "decompose_with_registry", short)  # noqa: B010  (its type is another)


def lowered(program: ExportedProgram, known: Iterable[Any]) -> ExportedProgram | None:
    """The program in operators that are `known`; None, and the program unchanged, if it has others.

    Takes `program` over.
    """
    operators = set(known)
    plan: list[tuple[fx.Node, Callable[[fx.Node], None]]] = []
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target in operators:
            continue
        step = _step(node, operators)
        if step is None:
            return None
        plan.append((node, step))
    for node, step in plan:
        step(node)
    program.graph.lint()
    program.graph_module.recompile()
    return program


def _step(node: fx.Node, operators: Collection[Any]) -> Callable[[fx.Node], None] | None:
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
    if _copying(node.target) in operators and _nobody_else_sees(node.args[0]):
        return _copy
    return None


def _copying(target: Any) -> Any:
    """The operator that does the same and leaves its argument unchanged: `add` for `add_`."""
    name = target._schema.name.split("::")[-1] if isinstance(target, torch._ops.OpOverload) else ""
    if not name.endswith("_") or name.endswith("__"):
        return None
    return getattr(getattr(aten, name[:-1], None), target._overloadname, None)


def _nobody_else_sees(value: Any) -> bool:
    """Whether a tensor has one reader and shares its memory with none that is read."""
    if not isinstance(value, fx.Node) or not isinstance(value.target, torch._ops.OpOverload):
        return False
    if len(value.users) != 1:
        return False
    if _copying(value.target) is not None:
        return _nobody_else_sees(value.args[0])
    return all(each.alias_info is None for each in value.target._schema.returns)


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


def _copy(node: fx.Node) -> None:
    node.target = _copying(node.target)


def _cast(node: fx.Node) -> None:
    node.args, node.kwargs = (node.args[0],), {"dtype": _dtype(node)}
    node.target = aten._to_copy.default
