"""Made-up readings for the tests of heads: small, padded, and the same every time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from de3bert.model.heads import HEADS, Heads, HeadSettings, Reading

HIDDEN, CLASSES, EXITS = 6, 3, 4
LENGTHS = (5, 2, 1, 4)


def made_heads(name: str, *, dropout: float = 0.1, **options: float | str) -> Heads:
    """Heads in evaluation mode, with weights and biases that all matter."""
    options = {"head_size": 8.0, **options}
    with torch.random.fork_rng():
        torch.manual_seed(11)
        heads = HEADS[name](HeadSettings(HIDDEN, CLASSES, EXITS, dropout, options))
        for parameter in heads.parameters():
            nn.init.normal_(parameter, std=0.7)
    return heads.eval()


def made_reading(exit_index: int, *, memory: bool, lengths: tuple[int, ...] = LENGTHS) -> Reading:
    """A batch of texts of these lengths at an exit, with noise where there is padding."""
    rows, tokens = len(lengths), max(lengths)
    noise = torch.Generator().manual_seed(5)
    past = torch.randn(rows, exit_index, HIDDEN, generator=noise)
    return Reading(
        torch.randn(rows, HIDDEN, generator=noise),
        past if memory and exit_index else None,
        torch.randn(rows, tokens, HIDDEN, generator=noise),
        (torch.arange(tokens)[None] < torch.tensor(lengths)[:, None]).long(),
    )


def one_row(reading: Reading, row: int) -> Reading:
    """A row by itself, without its padding."""
    only, length = slice(row, row + 1), int(reading.mask[row].sum())
    memory = None if reading.memory is None else reading.memory[only]
    tokens, mask = reading.tokens[only, :length], reading.mask[only, :length]
    return Reading(reading.pooled[only], memory, tokens, mask)


def affine(layer: nn.Module, vector: list[float]) -> list[float]:
    """W x + b in plain numbers."""
    assert isinstance(layer, nn.Linear)
    rows = zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    return [sum(w * x for w, x in zip(row, vector, strict=True)) + bias for row, bias in rows]


def gradient(tensor: Tensor) -> float:
    """The largest entry of a gradient; 0 when there is none."""
    return 0.0 if tensor.grad is None else float(tensor.grad.abs().max())
