"""Batches for losses: everything that any of them reads, at random but the same in every run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from de3bert.objective import LOSSES, ExitBatch, StatefulLoss

HIDDEN = 6
MakeBatch = Callable[..., ExitBatch]
RunLoss = Callable[[str, ExitBatch], Tensor]


class ForeseeingHeads(nn.Module):
    """Linear heads that also foresee later states, one layer per target."""

    def __init__(self, exits: int, classes: int) -> None:
        super().__init__()
        self.exits = nn.ModuleList(nn.Linear(HIDDEN, classes) for _ in range(exits))
        self.predictors = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(exits))

    def futures(self, states: Tensor) -> Tensor:
        return torch.stack([torch.tanh(predict(states)) for predict in self.predictors], 2)


def leaf(values: Tensor) -> Tensor:
    return values.detach().clone().requires_grad_()


@pytest.fixture
def make() -> MakeBatch:
    """A complete batch; fields given by name take the place of its own."""

    def build(
        rows: int = 6, exits: int = 4, classes: int = 3, seed: int = 0, **given: object
    ) -> ExitBatch:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            batch = ExitBatch(
                exit_logits=leaf(2 * torch.randn(rows, exits, classes)),
                labels=torch.arange(rows) % classes,
                distances=leaf(2 * torch.rand(rows, exits - 1, classes)),
                options={"dar": "center", "beta": 1.0},
                certainty=leaf(torch.rand(rows, exits - 1)),
                states=leaf(torch.tanh(torch.randn(rows, exits, HIDDEN))),
                heads=ForeseeingHeads(exits, classes),
                extras={
                    "row": torch.arange(rows),
                    "memorised": torch.randint(1, exits + 1, (rows,)),
                    "teacher_logits": leaf(2 * torch.randn(rows, classes)),
                    "first_tokens": leaf(torch.randn(rows, 3, HIDDEN)),
                    "teacher_states": leaf(torch.randn(rows, 2, HIDDEN)),
                    "difficult": torch.arange(rows) % 2 == 1,
                },
            )
        return replace(batch, **given)

    return build


@pytest.fixture
def run() -> RunLoss:
    """A registered loss on a batch; a stateful one is made with the batch's options."""

    def value(name: str, batch: ExitBatch) -> Tensor:
        part = LOSSES[name]
        if isinstance(part, type) and issubclass(part, StatefulLoss):
            part = part(batch.exit_logits.shape[1], batch.options)
        return part(batch)

    return value
