"""One vector per text and exit. The classifier and the prototypical network read the same one."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from de3bert.registry import Registry

__all__ = ["POOLINGS", "Pooling"]


class Pooling(nn.Module, ABC):
    """Base of all poolings: (rows, tokens, hidden) and mask (rows, tokens) to (rows, hidden).

    Attributes:
        fresh: no pretraining has touched its weights: they learn at the rate of the heads.
    """

    fresh = False

    def __init__(self, hidden_size: int, exits: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, hidden: Tensor, mask: Tensor, exit_index: int) -> Tensor: ...

    def weights(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        """What of the mask is the same at every exit: made once, and handed to `read`."""
        return mask

    def read(self, hidden: Tensor, weights: Tensor, exit_index: int) -> Tensor:
        """The same as `forward`, of what `weights` gives."""
        vector: Tensor = self(hidden, weights, exit_index)
        return vector

    def start_from(self, pooler: nn.Linear) -> None:
        """Takes over the backbone's trained pooler, where this pooling has one."""

    def internal_parts(self) -> list[nn.Module]:
        """The parts that belong to one exit before the last alone."""
        return []


POOLINGS: Registry[type[Pooling]] = Registry("pooling")


def mean_weights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What each token weighs in the mean: 1 / length, or 0 for padding. (rows, tokens)"""
    present = mask.to(dtype)
    return present / present.sum(1, keepdim=True).clamp_min(1.0)


def weighted(hidden: Tensor, weights: Tensor) -> Tensor:
    """The sum of states by weights (rows, tokens), as one product. (rows, hidden)"""
    return torch.bmm(weights.unsqueeze(1), hidden).squeeze(1)


@POOLINGS.register("cls")
class FirstToken(Pooling):
    """The first token's state."""

    def forward(self, hidden: Tensor, mask: Tensor, exit_index: int) -> Tensor:
        return hidden[:, 0]


@POOLINGS.register("mean")
class MeanPooling(Pooling):
    """The mean over the text's tokens. Fits encoders that were trained as sentence embedders."""

    def forward(self, hidden: Tensor, mask: Tensor, exit_index: int) -> Tensor:
        return self.read(hidden, self.weights(mask, hidden.dtype), exit_index)

    def weights(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        return mean_weights(mask, dtype)

    def read(self, hidden: Tensor, weights: Tensor, exit_index: int) -> Tensor:
        return weighted(hidden, weights)


@POOLINGS.register("shared_pooler")
class SharedPooler(Pooling):
    """tanh(W h_0 + b) with one pooler, the encoder's own, for every exit (the paper's choice)."""

    def __init__(self, hidden_size: int, exits: int) -> None:
        super().__init__(hidden_size, exits)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden: Tensor, mask: Tensor, exit_index: int) -> Tensor:
        return torch.tanh(self.dense(hidden[:, 0]))

    def start_from(self, pooler: nn.Linear) -> None:
        self.dense.load_state_dict(pooler.state_dict())


@POOLINGS.register("own_pooler")
class OwnPooler(Pooling):
    """tanh(W_m h_0 + b_m), a pooler per exit that starts as a copy of the encoder's own."""

    def __init__(self, hidden_size: int, exits: int) -> None:
        super().__init__(hidden_size, exits)
        self.fresh = True
        self.dense = nn.ModuleList(nn.Linear(hidden_size, hidden_size) for _ in range(exits))

    def forward(self, hidden: Tensor, mask: Tensor, exit_index: int) -> Tensor:
        return torch.tanh(self.dense[exit_index](hidden[:, 0]))

    def start_from(self, pooler: nn.Linear) -> None:
        self.fresh = False
        for dense in self.dense:
            dense.load_state_dict(pooler.state_dict())

    def internal_parts(self) -> list[nn.Module]:
        return list(self.dense[:-1])


@POOLINGS.register("mean_own_pooler")
class MeanOwnPooler(OwnPooler):
    """tanh(W_m s + b_m) of the mean s over the tokens: a pooler per exit for sentence embedders."""

    def forward(self, hidden: Tensor, mask: Tensor, exit_index: int) -> Tensor:
        return self.read(hidden, self.weights(mask, hidden.dtype), exit_index)

    def weights(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        return mean_weights(mask, dtype)

    def read(self, hidden: Tensor, weights: Tensor, exit_index: int) -> Tensor:
        return torch.tanh(self.dense[exit_index](weighted(hidden, weights)))
