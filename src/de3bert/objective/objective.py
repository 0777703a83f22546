"""The training loss as a sum of terms over exits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from de3bert.methods.method import OptionValue, Term
from de3bert.registry import Registry

__all__ = ["LOSSES", "ExitBatch", "Objective", "exit_weights"]


@dataclass(frozen=True)
class ExitBatch:
    """What a loss may read: one training batch as the exits saw it."""

    exit_logits: Tensor  # (rows, exits, classes)
    labels: Tensor  # (rows,)
    distances: Tensor | None  # (rows, exits - 1, classes)
    options: Mapping[str, OptionValue]


# A loss gives one value per exit it concerns, exit 1 first: (exits,) or (exits - 1,).
Loss = Callable[[ExitBatch], Tensor]
LOSSES: Registry[Loss] = Registry("loss")


def exit_weights(scheme: str, layers: Sequence[int]) -> Tensor:
    """Weights over exits, (exits,): `depth` gives m / sum of m, `last` the final head alone."""
    if scheme == "last":
        return torch.tensor([0.0] * (len(layers) - 1) + [1.0])
    weights = torch.tensor([float(layer) for layer in layers])
    return weights / weights.sum()


class Objective:
    """L = sum over terms t of w_t * sum over exits m of a_m * loss_t(m).

    For DE3 this is the paper's [sum m CE_m + alpha sum m DAR_m] / sum m: both sums share the
    denominator, so a loss that skips the final exit just uses the first weights.
    """

    def __init__(
        self, terms: Sequence[Term], options: Mapping[str, OptionValue], layers: Sequence[int]
    ) -> None:
        self.terms = tuple(terms)
        self.options = dict(options)
        self.layers = tuple(layers)

    def __call__(self, batch: ExitBatch) -> Tensor:
        total = batch.exit_logits.new_zeros((), dtype=torch.float32)
        for term in self.terms:
            weight = self.options[term.weight] if isinstance(term.weight, str) else term.weight
            values = LOSSES[term.loss](batch)
            shares = exit_weights(term.exits, self.layers)[: len(values)].to(values.device)
            total = total + float(weight) * (shares * values).sum()
        return total
