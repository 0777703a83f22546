"""Programs that need no second trace: the same graph as the exporter's own way gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn

from de3bert.export import lowering
from de3bert.export.graphs import ROWS, make_graph
from de3bert.export.lowering import lowered


class Program(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.linear(x))


def added_twice(x: Tensor) -> Tensor:
    first = torch.relu(x)
    return first.add_(1.0) * first


def seen_through_a_view(x: Tensor) -> Tensor:
    first = torch.relu(x)
    first.view(-1).add_(1.0)
    return first * 2


PLAIN = {
    "a cast": lambda x: x * (x > 0).to(torch.float32),
    "a cast at the end": lambda x: (x > 0).to(torch.float32),
    "an idle cast": lambda x: x.to(torch.float32) + 1,
    "an idle cast at the end": lambda x: (x + 1).to("cpu").to(torch.float32),
    "another name": lambda x: torch.where((x > 0) & (x < 1), x, torch.min(x, x * 2)),
    "in place, used twice": added_twice,
    "in place, seen by nobody else": lambda x: torch.relu(x).add_(1.0).mul_(x),
    "detached at the end": lambda x: (x * 2).detach_(),
    "detached": lambda x: (x * 2).detach_() + 1,
}
OTHER = {
    "in place, seen through a view": seen_through_a_view,
    "taken apart": lambda x: torch.square(x) + 1,
}


def exported(function: Callable[[Tensor], Tensor], patch: pytest.MonkeyPatch | None = None):
    torch.manual_seed(0)
    if patch is not None:
        patch.setattr(lowering, "lowered", lambda program, known: None)
    module = Program(function)
    graph = make_graph(module, [torch.zeros(2, 4)], [{0: ROWS}], ["x"], ["y"])
    return module, graph


@pytest.mark.parametrize("name", [*PLAIN, *OTHER])
def test_the_graph_computes_what_the_module_does(name, tmp_path, monkeypatch):
    import onnx_ir as ir

    tried: list[bool] = []
    short = lowering.lowered

    def watched(program, known):
        made = short(program, known)
        tried.append(made is not None)
        return made

    monkeypatch.setattr(lowering, "lowered", watched)
    module, graph = exported({**PLAIN, **OTHER}[name])
    assert tried == [name in PLAIN]
    ir.save(graph, tmp_path / "short.onnx")
    _, whole = exported({**PLAIN, **OTHER}[name], monkeypatch)
    ir.save(whole, tmp_path / "whole.onnx")
    assert {node.op_type for node in graph.graph} <= {node.op_type for node in whole.graph}
    x = torch.randn(7, 4)
    expected = module(x).detach().numpy()
    for way in ("short", "whole"):
        graph = ReferenceEvaluator(str(tmp_path / f"{way}.onnx"))
        np.testing.assert_allclose(graph.run(None, {"x": x.numpy()})[0], expected, atol=1e-6)


def test_a_program_with_other_operators_is_left_unchanged():
    program = torch.export.export(
        Program(OTHER["in place, seen through a view"]).eval(), (torch.zeros(2, 4),)
    )
    before = [(node.op, node.target, node.args) for node in program.graph.nodes]
    assert lowered(program, {torch.ops.aten.linear.default, torch.ops.aten.relu.default}) is None
    assert [(node.op, node.target, node.args) for node in program.graph.nodes] == before


def test_a_torch_that_is_built_otherwise_is_left_alone(monkeypatch):
    from torch.onnx._internal.exporter import _fx_passes

    monkeypatch.delattr(_fx_passes, "decompose_with_registry")
    lowering.lower_without_tracing()
    assert not hasattr(_fx_passes, "decompose_with_registry")
