"""What the exits say of every single row, before anything is averaged."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["correct", "cross_entropies", "first_exit"]


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of every row at every exit. (rows, exits, classes), (rows,) -> (rows, exits)"""
    by_class = logits.float().transpose(1, 2)  # (rows, classes, exits)
    labels = labels[:, None].expand(-1, logits.shape[1])
    return functional.cross_entropy(by_class, labels, reduction="none")


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """Is the likeliest class the right one? (rows, exits, classes), (rows,) -> (rows, exits)"""
    return logits.argmax(-1) == labels[:, None]


def first_exit(leaves: Tensor) -> Tensor:
    """The first exit where a row leaves, else the last, from 1. (..., exits - 1) bool -> (...)"""
    at_last = leaves.new_ones((*leaves.shape[:-1], 1))
    return torch.cat([leaves, at_last], -1).int().argmax(-1) + 1
