"""Tokens that stop one by one: a table says which layer is the last to change each (HashEE).

A token that has stopped keeps its state; layers above still read it as key and value. Here every
layer is computed for all tokens and the stopped ones are put back, so time does not follow the
layers per token. What a text would cost with kernels that skip them is reported apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import initialization as init

from de3bert.errors import UsageError
from de3bert.exits.token_hash import HASHES
from de3bert.exits.token_layers import (
    DRAWN,
    OCCURRENCE,
    TokenLayers,
    bucket_layers,
    last_layers,
)
from de3bert.methods.method import OptionValue
from de3bert.model.depth import DEPTHS

__all__ = ["TokenTable", "deepest"]


@DEPTHS.register("last")
def deepest(depth: int, options: Mapping[str, OptionValue]) -> list[int]:
    """The layers up to `last`, behind which no token would be changed; 0 keeps all."""
    last = float(options.get("last", 0.0))
    if last != int(last) or not 0 <= last <= depth:
        raise UsageError(
            f"last={last:g}, but the backbone has {depth} layers; take 1 to {depth}, or 0 for all."
        )
    return list(range(int(last) or depth))


class TokenTable(nn.Module):
    """The last layer of every vocabulary id; `forward` looks tokens up.

    Before a training has filled it, every token goes through all layers.

    Args:
        vocabulary: number of ids.
        last: the deepest layer, that of special tokens and of ids never seen in training.
    """

    token_layers: Tensor

    def __init__(self, vocabulary: int, last: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__()
        self.last = last
        self.layers = bucket_layers(_buckets(options), last)
        name = str(options.get("hash", "frequency"))
        HASHES[name]  # an unknown one is refused before the training, not after
        self.draws = name == OCCURRENCE
        self.register_buffer("token_layers", torch.full((vocabulary,), last))

    def forward(self, ids: Tensor) -> Tensor:
        """(rows, tokens) -> (rows, tokens)"""
        buckets = torch.tensor(self.layers, device=ids.device) if self.draws else None
        return last_layers(ids, self.token_layers, self.last, buckets)

    def reset(self) -> None:
        """All layers for all tokens. The model calls this at its start."""
        init.constant_(self.token_layers, self.last)  # lets a table alone that was read from a file

    @torch.no_grad()
    def fill(self, buckets: Sequence[Sequence[int]]) -> None:
        """Takes up a table: the ids of every bucket, first to stop first; all others stop last.

        Where places draw their layers, any id of a bucket does.
        """
        self.token_layers.fill_(self.last)
        for layer, ids in zip(self.layers, buckets, strict=False):
            chosen = torch.tensor(ids, dtype=torch.long)
            self.token_layers[chosen] = DRAWN if self.draws else layer

    @torch.no_grad()
    def resize(self, vocabulary: int) -> None:
        """Follows the embeddings; new ids go through all layers."""
        kept = self.token_layers[:vocabulary]
        new = kept.new_full((vocabulary - len(kept),), self.last)
        self.token_layers = torch.cat([kept, new])

    def arrays(self) -> TokenLayers:
        """The same table for those who work without torch."""
        buckets = np.array(self.layers, dtype=np.int64) if self.draws else None
        return TokenLayers(self.token_layers.cpu().numpy(), self.last, buckets)


def _buckets(options: Mapping[str, OptionValue]) -> int:
    value: Any = float(options.get("buckets", 6.0))
    if value != int(value) or value < 1:
        raise UsageError(f"Option buckets must be a whole number from 1 on, got {value:g}.")
    return int(value)
