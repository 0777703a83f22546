"""Walks up the exits with a router that leaves by chance."""

from __future__ import annotations

import torch
from torch import Tensor

from de3bert.objective.per_row import first_exit

__all__ = ["exit_chances", "log_probability", "roll_out"]

RARE = 1e-7  # a smaller chance counts as this one: its logarithm would have a boundless slope


def roll_out(leave: Tensor, rollouts: int, generator: torch.Generator) -> Tensor:
    """The exits taken in `rollouts` walks of every row, counted from 1, (rollouts, rows).

    Args:
        leave: the chance to leave at each internal exit, (rows, exits - 1). Who never leaves is
            forced to at the last exit.
        generator: on the CPU, so that the walks do not depend on the device.
    """
    draws = torch.rand((rollouts, *leave.shape), generator=generator).to(leave.device)
    return first_exit(draws < leave.detach())


def exit_chances(leave: Tensor) -> Tensor:
    """The chance of each exit: c_m = leave_m * (1 - leave_1) ... (1 - leave_{m-1}), (rows, exits).

    Args:
        leave: the chance to leave at each internal exit, (rows, exits - 1); at the last it is 1.
    """
    one = leave.new_ones(len(leave), 1)
    still_there = torch.cat([one, torch.cumprod(1 - leave, 1)], 1)
    return still_there * torch.cat([leave, one], 1)


def log_probability(leave: Tensor, taken: Tensor) -> Tensor:
    """Log of the chance of the walk: stay before the exit taken, leave there (free at the last).

    Args:
        leave: (rows, exits - 1), in [0, 1].
        taken: counted from 1, (rollouts, rows).

    Returns:
        (rollouts, rows). Decisions that were never made have no gradient.
    """
    numbers = torch.arange(1, leave.shape[1] + 1, device=leave.device)
    stays, leaves = numbers < taken[..., None], numbers == taken[..., None]
    chance = torch.where(leaves, leave, torch.where(stays, 1 - leave, 1.0))
    return chance.clamp_min(RARE).log().sum(-1)
