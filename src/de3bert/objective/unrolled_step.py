"""One gradient step of the exits' linear heads that can itself be differentiated."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError

__all__ = ["linear_heads", "stepped_logits"]


def linear_heads(heads: nn.Module | None) -> tuple[Tensor, Tensor]:
    """Weights (exits, classes, hidden) and biases (exits, classes) of all exits, as constants."""
    parts = getattr(heads, "exits", None)
    parts = list(parts) if isinstance(parts, nn.ModuleList) else []
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    if not parts or len(linear) < len(parts):
        had = "none" if heads is None else type(heads).__name__
        raise UsageError(
            f"unroll=1 differentiates through a step of linear heads, but these heads are {had}. "
            "Use linear heads, or unroll=0."
        )
    weight = torch.stack([part.weight.detach().float() for part in linear])
    return weight, torch.stack([part.bias.detach().float() for part in linear])


def stepped_logits(
    states: Tensor,
    weight: Tensor,
    bias: Tensor,
    loss: Callable[[Tensor], Tensor],
    rate: float,
) -> Tensor:
    """Logits after W <- W - rate dL/dW, b <- b - rate dL/db, (rows, exits, classes).

    Heads and states are constants; the gradient goes to whatever else `loss` is made of.

    Args:
        states: (rows, exits, hidden).
        weight: (exits, classes, hidden).
        bias: (exits, classes).
        loss: logits (rows, exits, classes) -> ().
        rate: of the step.
    """
    states, bias = states.detach(), bias.detach().requires_grad_()
    weight = weight.detach().requires_grad_()
    value = loss(_logits(states, weight, bias))
    slopes = torch.autograd.grad(value, (weight, bias), create_graph=True)
    return _logits(states, weight.detach() - rate * slopes[0], bias.detach() - rate * slopes[1])


def _logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.einsum("rmh,mkh->rmk", states, weight) + bias
