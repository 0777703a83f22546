"""What a head is: it makes the logits of an exit from whatever that exit may read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.objective import Clock
from de3bert.registry import Registry

__all__ = ["HEADS", "HeadSettings", "Heads", "Reading"]


@dataclass(frozen=True)
class Reading:
    """What a head may read at one exit.

    Attributes:
        pooled: (rows, hidden), the vector of this exit.
        memory: (rows, exit_index, hidden), the vectors of the exits before this one; None at the
            first exit, and for heads that keep no memory.
        tokens: (rows, tokens, hidden), the states as an exit should read them.
        mask: (rows, tokens), 0 where there is padding.
    """

    pooled: Tensor
    memory: Tensor | None
    tokens: Tensor
    mask: Tensor

    def vectors(self, exit_index: int, *, past_learns: bool = True) -> Tensor:
        """The vectors of all exits so far, this one's last: (rows, exit_index + 1, hidden).

        Args:
            past_learns: False lets no gradient through to the earlier exits.
        """
        remembered = 0 if self.memory is None else self.memory.shape[1]
        if remembered != exit_index:  # else the wrong vectors would be summed silently
            raise ValueError(f"exit {exit_index} needs as many earlier vectors, got {remembered}")
        own = self.pooled.unsqueeze(1)
        if self.memory is None:
            return own
        return torch.cat([self.memory if past_learns else self.memory.detach(), own], 1)


@dataclass(frozen=True)
class HeadSettings:
    """What the heads of a model are made for.

    Attributes:
        exits: number of exits, the final one included.
        dropout: of the backbone's own classification head.
        options: of the method; a kind of heads reads those it knows.
    """

    hidden_size: int
    classes: int
    exits: int
    dropout: float
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    def linear(self) -> nn.Linear:
        """A layer from the vector of an exit to its logits."""
        return nn.Linear(self.hidden_size, self.classes)


class Heads(nn.Module, ABC):
    """Base of all kinds of heads. One object holds the heads of all exits of a model."""

    keeps_memory: ClassVar[bool] = False  # reads the vectors of earlier exits
    reads_tokens: ClassVar[bool] = False  # reads the states of all tokens
    fresh: ClassVar[bool] = True  # no pretraining has touched it: it learns at a rate of its own
    exits: nn.ModuleList  # a part per exit; heads that share parts have none and say what is final

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__()
        self.dropout = nn.Dropout(settings.dropout)

    @abstractmethod
    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        """Logits of one exit, (rows, classes). Exits are counted from 0."""

    def handed_on(self, hidden: Tensor, layer: int, clock: Clock) -> Tensor:
        """In training, the states after a layer as the next one gets them: by default unchanged."""
        return hidden

    def internal_parts(self) -> list[nn.Module]:
        """The parts that belong to one exit before the last alone."""
        if not isinstance(getattr(self, "exits", None), nn.ModuleList):
            raise UsageError(f"{type(self).__name__} have no parts of single exits.")
        return list(self.exits[:-1])

    def final_parts(self) -> list[nn.Module]:
        """The parts that a model with the final head alone would have as well."""
        return [self.exits[-1]]

    def internal_parameters(self) -> int:
        """Parameters that exits before the last add to a model with the final head alone."""
        return _size(self) - sum(_size(part) for part in self.final_parts())


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


HEADS: Registry[type[Heads]] = Registry("heads")
