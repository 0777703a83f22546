"""What one encoder costs, measured in layers of another."""

from __future__ import annotations

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from de3bert.model.encoder import Encoder

__all__ = ["in_layers_of", "layer_operations"]

TOKENS = 32  # of the text that is counted; of two models of one shape it does not matter


def in_layers_of(small: Encoder, big: Encoder) -> int:
    """ceil(F_small / (F_big / M)), F the operations of all layers, M the layers of the big model.

    Rounded up, so that a cascade never looks cheaper than it is; n layers like those of the big
    model cost n. Embeddings are looked up in both, and no layer of either.
    """
    spent, whole = layer_operations(small) * big.depth, layer_operations(big)
    return max(1, -(-spent // whole))


@torch.no_grad()
def layer_operations(encoder: Encoder) -> int:
    """Operations of all matrix products in the layers, attention's own included, for one text."""
    was_training = encoder.training
    encoder.eval()
    device = next(encoder.parameters()).device
    ids = torch.full((1, TOKENS), 5, device=device)
    # The counter knows the plain form of attention; the fused one of the CPU it counts as nothing.
    with sdpa_kernel(SDPBackend.MATH):
        prepared = encoder.prepare(ids, torch.ones_like(ids))
        hidden = prepared.embedded
        with FlopCounterMode(display=False) as counter:
            for number in range(1, encoder.depth + 1):
                hidden = encoder.layer(prepared, number, hidden)
    encoder.train(was_training)
    return int(counter.get_total_flops())
