"""All kinds of heads by name: `linear` is here, the others are in files of their own.

Importing this registers all of them.
"""

from __future__ import annotations

from torch import Tensor, nn

from de3bert.model.attached_head import AttachedHeads
from de3bert.model.attention_head import AttentionHeads
from de3bert.model.fused_head import FusedHeads
from de3bert.model.head import HEADS, Heads, HeadSettings, Reading
from de3bert.model.mixed_head import MixedHeads

__all__ = [
    "HEADS",
    "AttachedHeads",
    "AttentionHeads",
    "FusedHeads",
    "HeadSettings",
    "Heads",
    "LinearHeads",
    "MixedHeads",
    "Reading",
]


@HEADS.register("linear")
class LinearHeads(Heads):
    """z = W_m dropout(s) + b_m: a linear layer per exit on its vector s."""

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__(settings)
        self.exits = nn.ModuleList(settings.linear() for _ in range(settings.exits))

    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        return self.exits[exit_index](self.dropout(reading.pooled))
