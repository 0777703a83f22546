"""Parts that are trained to say by themselves whether a row may leave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from de3bert.methods.method import OptionValue
from de3bert.registry import Registry

__all__ = ["ROUTERS", "Router"]


class Router(nn.Module, ABC):
    """Base of all routers: the vector of an exit (rows, hidden) to a certainty (rows,).

    Args:
        exits: number of exits before the last, where there is no choice to leave.
        options: of the method.
    """

    fresh: ClassVar[bool] = True  # no pretraining has touched it: it learns at a rate of its own

    def __init__(self, hidden_size: int, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, pooled: Tensor, exit_index: int) -> Tensor:
        """How sure that a row may leave at this exit, in (0, 1): (rows,)."""


ROUTERS: Registry[type[Router]] = Registry("router")


@ROUTERS.register("lte")
class LearningToExit(Router):
    """sigmoid(w s + b), one for all exits (BERxiT, Xin et al., 2021)."""

    def __init__(self, hidden_size: int, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__(hidden_size, exits, options)
        self.linear = nn.Linear(hidden_size, 1)

    def forward(self, pooled: Tensor, exit_index: int) -> Tensor:
        return torch.sigmoid(self.linear(pooled)).squeeze(-1)


@ROUTERS.register("policy")
class ExitPolicy(Router):
    """sigmoid(w_m GELU(W_m s + b_m) + c_m), a policy network per exit, 32 wide.

    ConsistentEE, Zeng et al., 2024. The value is the probability of the action to leave.
    """

    WIDTH = 32

    def __init__(self, hidden_size: int, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__(hidden_size, exits, options)
        self.exits = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden_size, self.WIDTH), nn.GELU(), nn.Linear(self.WIDTH, 1))
            for _ in range(exits)
        )

    def forward(self, pooled: Tensor, exit_index: int) -> Tensor:
        return torch.sigmoid(self.exits[exit_index](pooled)).squeeze(-1)
