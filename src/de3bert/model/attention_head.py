"""Heads with a small self-attention over the tokens.

FastBERT, Liu et al., 2020: a Self-distilling BERT with Adaptive Inference Time.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model.head import HEADS, Heads, HeadSettings, Reading

__all__ = ["AttentionHeads"]

WAYS = 2  # heads of the attention, as in the paper


@HEADS.register("attention")
class AttentionHeads(Heads):
    """A narrow attention classifier per exit, on the states of all tokens.

        x = tanh(W h + b)                                  hidden -> head_size, every token
        y = first token of 2-head self-attention over x    with query, key, value, output layers
        z = C tanh(D y + d) + c

    All layers have a bias. Dropout falls on the attention's weights alone, as in the authors' code.
    The option `head_size` (128) is the width of the attention.
    """

    reads_tokens = True

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__(settings)
        self.exits = nn.ModuleList(AttentionHead(settings) for _ in range(settings.exits))

    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        return self.exits[exit_index](reading.tokens, reading.mask)


class AttentionHead(nn.Module):
    """The head of one exit: (rows, tokens, hidden) and mask (rows, tokens) to (rows, classes)."""

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__()
        size = _head_size(settings.options)
        self.dropout = settings.dropout
        self.narrow = nn.Linear(settings.hidden_size, size)
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.output = nn.Linear(size, size)
        self.dense = nn.Linear(size, size)
        self.classifier = nn.Linear(size, settings.classes)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        narrow = torch.tanh(self.narrow(tokens))  # (rows, tokens, size)
        read = nn.functional.scaled_dot_product_attention(
            _split(self.query(narrow[:, :1])),  # only the first token is read in the end
            _split(self.key(narrow)),
            _split(self.value(narrow)),
            attn_mask=mask.bool()[:, None, None, :],
            dropout_p=self.dropout if self.training else 0.0,
        )  # (rows, WAYS, 1, size / WAYS)
        first = self.output(read.flatten(1))  # (rows, size)
        return self.classifier(torch.tanh(self.dense(first)))


def _split(states: Tensor) -> Tensor:
    """(rows, tokens, size) -> (rows, WAYS, tokens, size / WAYS)"""
    return states.unflatten(-1, (WAYS, -1)).transpose(1, 2)


def _head_size(options: Mapping[str, OptionValue]) -> int:
    value = options.get("head_size", 128.0)
    if isinstance(value, str) or value < WAYS or value % WAYS:
        raise UsageError(
            f"Option head_size is a whole number that {WAYS} attention heads can share, "
            f"such as 128, got {value!r}."
        )
    return int(value)
