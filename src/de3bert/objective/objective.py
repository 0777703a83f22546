"""The training loss as a sum of terms over exits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from de3bert.methods.method import OptionValue, Term
from de3bert.registry import Registry

__all__ = ["LOSSES", "Clock", "ExitBatch", "Objective", "StatefulLoss", "exit_weights"]


@dataclass
class Clock:
    """Where a training stands; the trainer sets it before every step.

    Attributes:
        step: optimiser steps of this phase done so far.
        total: all steps of this phase.
        epoch: whole epochs of this phase done so far.
        seed: the training's seed. Losses that draw numbers do so with `generator()`, so that a
            training that was stopped draws the same ones.
    """

    step: int = 0
    total: int = 1
    epoch: int = 0
    seed: int = 0

    @property
    def progress(self) -> float:
        """The share of the phase that is done, in [0, 1]."""
        return min(1.0, self.step / max(1, self.total))

    def generator(self, salt: int = 0) -> torch.Generator:
        """Random numbers (on the CPU) that depend on seed, step and `salt` alone."""
        return torch.Generator().manual_seed(self.seed * 1_000_003 + self.step * 31 + salt)


@dataclass(frozen=True)
class ExitBatch:
    """What a loss may read: one training batch as the exits saw it."""

    exit_logits: Tensor  # (rows, exits, classes)
    labels: Tensor  # (rows,)
    distances: Tensor | None  # (rows, exits - 1, classes)
    options: Mapping[str, OptionValue]
    certainty: Tensor | None = None  # (rows, exits - 1) in (0, 1), of the router
    states: Tensor | None = None  # (rows, exits, hidden), the vectors that the exits read
    heads: nn.Module | None = None  # the model's heads, for losses that ask them for more
    clock: Clock = field(default_factory=Clock)
    # What was prepared per row before the phase, by name: teacher's logits, difficulty ...
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    training: bool = True
    tokens: Tensor | None = None  # (rows, tokens, hidden), the last states, for losses on tokens


# A loss gives one value per exit it concerns, exit 1 first: (exits,) or (exits - 1,); or one
# number, (), that is complete in itself.
Loss = Callable[[ExitBatch], Tensor]


class StatefulLoss(nn.Module):
    """A loss that remembers (buffers) or learns (parameters). Made once per model.

    Everything it keeps must be a buffer or a parameter: checkpoints hold nothing else.

    Attributes:
        reads_tokens: it reads `batch.tokens`, which are not kept otherwise.
        learning_rate: of its own parameters, which then do not decay; None: that of the encoder.
    """

    reads_tokens: ClassVar[bool] = False
    learning_rate: float | None = None

    def __init__(self, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__()
        self.exits = exits
        self.options = dict(options)


LOSSES: Registry[Loss | type[StatefulLoss]] = Registry("loss")


def exit_weights(scheme: str, layers: Sequence[int]) -> Tensor:
    """Weights over exits, (exits,); see `Term.exits`."""
    exits = len(layers)
    if scheme == "last":
        return torch.tensor([0.0] * (exits - 1) + [1.0])
    if scheme == "internal":
        return torch.tensor([1.0] * (exits - 1) + [0.0])
    if scheme == "uniform":
        return torch.ones(exits)
    if scheme == "mean":
        return torch.full((exits,), 1.0 / exits)
    weights = torch.tensor([float(layer) for layer in layers])
    return weights / weights.sum()


class Objective(nn.Module):
    """L = sum over terms t of w_t * sum over exits m of a_m * loss_t(m).

    For DE3 this is the paper's [sum m CE_m + alpha sum m DAR_m] / sum m: both sums share the
    denominator, so a loss that skips the final exit just uses the first weights.

    Args:
        terms: the loss of the current phase; `enter` changes it.
        options: of the method.
        layers: the layers with an exit.
        all_terms: the terms of all phases, whose stateful losses are made at once.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        options: Mapping[str, OptionValue],
        layers: Sequence[int],
        all_terms: Sequence[Term] = (),
    ) -> None:
        super().__init__()
        self.terms = tuple(terms)
        self.options = dict(options)
        self.layers = tuple(layers)
        self.clock = Clock()
        self.stateful = nn.ModuleDict()
        for term in (*terms, *all_terms):
            part = LOSSES[term.loss]
            if isinstance(part, type) and term.loss not in self.stateful:
                self.stateful[term.loss] = part(len(self.layers), self.options)

    def enter(self, terms: Sequence[Term]) -> None:
        """Takes up the loss of another phase."""
        self.terms = tuple(terms)

    @property
    def reads_tokens(self) -> bool:
        """Whether a loss of the current phase reads the states of all tokens."""
        parts = (self._loss(term.loss) for term in self.terms)
        return any(getattr(part, "reads_tokens", False) for part in parts)

    def forward(self, batch: ExitBatch) -> Tensor:
        total = batch.exit_logits.new_zeros((), dtype=torch.float32)
        for term in self.terms:
            if not _counts(term, batch):
                continue
            weight = self.options[term.weight] if isinstance(term.weight, str) else term.weight
            values = self._loss(term.loss)(batch)
            if values.ndim:
                shares = exit_weights(term.exits, self.layers)[: len(values)].to(values.device)
                values = (shares * values).sum()
            total = total + float(weight) * values
        return total

    def _loss(self, name: str) -> Callable[[ExitBatch], Tensor]:
        part: Any = self.stateful[name] if name in self.stateful else LOSSES[name]
        return part


def _counts(term: Term, batch: ExitBatch) -> bool:
    if not batch.training:
        return all(name in batch.extras for name in term.needs)
    return term.steps == "all" or (batch.clock.step % 2 == 0) == (term.steps == "even")
