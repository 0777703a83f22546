"""Heads on a learned mixture of the vectors of all exits so far.

RightTool, Schwartz et al., 2020: The Right Tool for the Job.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import initialization as init

from de3bert.model.head import HEADS, Heads, HeadSettings, Reading

__all__ = ["MixedHeads"]


@HEADS.register("mixed")
class MixedHeads(Heads):
    """z_i = V_i (sum over j <= i of u_j dropout(s_j)) + v_i with u = w_i / |w_i|, w_i learned.

    Differs from the authors' code in three points. w_i begins at the exit's own vector, where the
    head is a `linear` one, and not at random. Its length is taken out in the formula; theirs makes
    a new parameter after every step, which the optimiser then never sees. And only vectors of
    exits are mixed: theirs are of all layers below, which is the same with an exit at each layer.
    """

    keeps_memory = True

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__(settings)
        self.exits = nn.ModuleList(MixedHead(settings, 1 + i) for i in range(settings.exits))

    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        return self.exits[exit_index](self.dropout(reading.vectors(exit_index)))


class MixedHead(nn.Module):
    """The head of one exit: (rows, vectors, hidden) to (rows, classes)."""

    def __init__(self, settings: HeadSettings, vectors: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(vectors))
        self.classifier = settings.linear()
        self.reset()

    @torch.no_grad()
    def reset(self) -> None:
        """Puts all weight on the last vector, the exit's own. The model calls this at its start."""
        start = torch.zeros_like(self.weights)
        start[-1] = 1.0
        init.copy_(self.weights, start)  # lets weights alone that were read from a file

    def forward(self, vectors: Tensor) -> Tensor:
        unit = nn.functional.normalize(self.weights, dim=0)
        return self.classifier((unit[:, None] * vectors).sum(1))
