"""Imitation: every exit learns to foresee the states of the layers after it (GPFEE)."""

from __future__ import annotations

import torch
from torch import Tensor

from de3bert.errors import UsageError
from de3bert.exits.signals.formulas import cosine_distance
from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, ExitBatch

__all__ = ["foresight_error", "imitation"]

NAME = "imitation"


@LOSSES.register(NAME)
def imitation(batch: ExitBatch) -> Tensor:
    """The foresight error of the heads' own predictions of later states, ()."""
    needs.internal_exits(batch, NAME)
    states = needs.states(batch, NAME)
    futures = getattr(batch.heads, "futures", None)
    if futures is None:
        had = "none" if batch.heads is None else type(batch.heads).__name__
        raise UsageError(
            f'The loss "{NAME}" needs heads that predict later states, but these are {had}. Use a '
            "method whose heads have `futures`."
        )
    return foresight_error(states, futures(states))


def foresight_error(states: Tensor, futures: Tensor) -> Tensor:
    """L_cos = 1/(M-1) sum over i < M of the mean over j > i of 1 - cos(s_j, s~_{i->j}), ().

    Args:
        states: s, (rows, exits, hidden); constants here, they are what is imitated.
        futures: s~, (rows, exits, exits, hidden); [:, i, j] is foreseen at exit i for exit j. Only
            j > i is read.
    """
    exits = states.shape[1]
    sources, targets = torch.triu_indices(exits, exits, 1, device=states.device)
    distances = cosine_distance(states.detach()[:, targets], futures[:, sources, targets].float())
    later = exits - 1 - sources  # how many exits come after the source, (pairs,)
    return (distances / later).sum(1).mean(0) / (exits - 1)
