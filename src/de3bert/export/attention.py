"""Attention as one node: what the graph of a layer says where a backbone would compute scores.

Most encoder families ask a registry of transformers for their attention function. While a model is
exported they are given this one, which becomes a single fused operator of ONNX Runtime in place of
some twenty small ones. Padding travels as one integer per token instead of a matrix of scores.
Families that compute attention themselves (MPNet, DeBERTa) are exported unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function, eager_mask

__all__ = ["FUSED", "PLAIN", "attention_as"]

FUSED = "de3bert_fused"
PLAIN = "eager"
OPERATOR = "com.microsoft::MultiHeadAttention"


@contextmanager
def attention_as(encoder: nn.Module, kind: str) -> Iterator[None]:
    """Runs the block with the attention of all backbones in it replaced: `FUSED` or `PLAIN`."""
    owners: list[Any] = [part for part in encoder.modules() if hasattr(part, "config")]
    configs = list({id(owner.config): owner.config for owner in owners}.values())
    before = [config._attn_implementation for config in configs]
    try:
        for config in configs:
            config._attn_implementation = kind
        yield
    finally:
        for config, implementation in zip(configs, before, strict=True):
            config._attn_implementation = implementation


def fused_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """softmax(scaling q k' + mask) v; all (rows, heads, tokens, width) -> (rows, tokens, heads, w).

    A mask with two axes names the tokens that exist; one with four is added to the scores.
    """
    rows, heads, tokens, width = query.shape
    groups = heads // key.shape[1]
    if groups > 1:  # grouped queries: several heads share one key
        key = key.repeat_interleave(groups, dim=1)
        value = value.repeat_interleave(groups, dim=1)
    padding = attention_mask if attention_mask is not None and attention_mask.dim() == 2 else None
    added = attention_mask if padding is None else None
    flat = [part.transpose(1, 2).reshape(rows, tokens, -1) for part in (query, key, value)]
    read = torch.onnx.ops.symbolic(
        OPERATOR,
        (*flat, None, padding, added),
        attrs={"num_heads": heads, "scale": float(scaling or width**-0.5)},
        dtype=query.dtype,
        shape=(rows, tokens, heads * value.shape[-1]),
        version=1,
    )
    return read.reshape(rows, tokens, heads, -1), None


def fused_mask(
    *, mask_function: Any, attention_mask: Tensor | None, **options: Any
) -> Tensor | None:
    """(rows, tokens) integers where every token sees every other, else scores to add."""
    if mask_function is bidirectional_mask_function and attention_mask is not None:
        return attention_mask.to(torch.int32)
    options["allow_is_bidirectional_skip"] = False
    return eager_mask(mask_function=mask_function, attention_mask=attention_mask, **options)


AttentionInterface.register(FUSED, fused_attention)
AttentionMaskInterface.register(FUSED, fused_mask)
