"""All kinds of heads by name: `linear` is here, the others are in files of their own.

Importing this registers all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from de3bert.methods.method import OptionValue
from de3bert.model.attached_head import AttachedHeads
from de3bert.model.attention_head import AttentionHeads
from de3bert.model.fused_head import FusedHeads
from de3bert.model.head import HEADS, Heads, Reading
from de3bert.model.mixed_head import MixedHeads

__all__ = [
    "HEADS",
    "AttachedHeads",
    "AttentionHeads",
    "FusedHeads",
    "Heads",
    "LinearHeads",
    "MixedHeads",
    "Reading",
]


@HEADS.register("linear")
class LinearHeads(Heads):
    """z = W_m dropout(s) + b_m: a linear layer per exit on its vector s."""

    def __init__(
        self,
        hidden_size: int,
        classes: int,
        exits: int,
        dropout: float,
        options: Mapping[str, OptionValue],
    ) -> None:
        super().__init__(hidden_size, classes, exits, dropout, options)
        self.exits = nn.ModuleList(nn.Linear(hidden_size, classes) for _ in range(exits))

    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        return self.exits[exit_index](self.dropout(reading.pooled))
