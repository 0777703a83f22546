"""A hook that acts before every forward pass of training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import nn

from de3bert.objective import Clock
from de3bert.training.hook import Hook

__all__ = ["PerPass"]

APART = 10_007  # between the random numbers of two passes of one step


class PerPass(Hook, ABC):
    """Calls `before_pass` with the keyword arguments of the model, which it may change.

    Where gradients are accumulated a step has several passes, each with random numbers of its own;
    a batch that runs in chunks is one pass.

    Attributes:
        salt: keeps the random numbers of a hook apart from those of others.
        clock: of the current step.
    """

    salt: ClassVar[int] = 0

    def before(self) -> None:
        self.clock = Clock()
        self.passes = 0
        self.handle = self.context.model.register_forward_pre_hook(self._pass, with_kwargs=True)

    def step(self, clock: Clock) -> None:
        self.clock, self.passes = clock, 0

    def after(self) -> None:
        self.handle.remove()

    @abstractmethod
    def before_pass(self, given: dict[str, Any], generator: torch.Generator) -> None:
        """Changes the keyword arguments of the coming pass, with random numbers of its own."""

    def _pass(
        self, model: nn.Module, arguments: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if not model.training:
            return None
        changed = dict(given)
        self.before_pass(changed, self.clock.generator(self.salt + APART * self.passes))
        self.passes += 1
        return arguments, changed
