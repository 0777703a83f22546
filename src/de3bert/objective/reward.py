"""What leaving at an exit is worth (ConsistentEE), and which rows are hard."""

from __future__ import annotations

from torch import Tensor

__all__ = ["memorised_layer", "reward"]


def memorised_layer(correct: Tensor) -> Tensor:
    """MEM: the shallowest exit from which every later one is right, counted from 1.

    The last one where it is wrong itself. Not the oracle's exit, which is the first right one.

    Args:
        correct: is the exit right, (rows, exits).

    Returns:
        (rows,) int64.
    """
    exits = correct.shape[1]
    right_to_the_end = correct.long().flip(1).cumprod(1).sum(1)  # how many, counted from the end
    return (exits - right_to_the_end + 1).clamp_max(exits)


def reward(
    cross_entropy: Tensor, taken: Tensor, memorised: Tensor, exits: int, price: float
) -> Tensor:
    """R = -CE(l) - a l (1 - MEM / L): easy rows (small MEM) pay more for every layer.

    Args:
        cross_entropy: at the exit that was taken, (..., rows).
        taken: l, counted from 1, (..., rows).
        memorised: MEM, counted from 1, (rows,).
        exits: L. Exits count as layers: with an exit after every layer they are the same.
        price: a.
    """
    return -cross_entropy - price * taken * (1 - memorised / exits)
