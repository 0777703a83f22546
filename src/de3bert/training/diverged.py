"""A training that has lost its way: stopped where it happens, and never saved."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from de3bert.errors import De3Error

__all__ = ["DivergedError", "diverged", "unsound"]


class DivergedError(De3Error):
    """The loss or the weights are no finite numbers any more."""


def unsound(model: nn.Module) -> str | None:
    """The first weight, buffer or prototype that is not finite, by name; None where all are."""
    for name, values in model.state_dict().items():
        if values.is_floating_point() and not bool(torch.isfinite(values).all()):
            return name
    return None


def diverged(
    what: str, phase: str, step: int, epoch: float, learning_rate: float, checkpoint: Path | None
) -> DivergedError:
    """The error: where it happened, what is kept, what to do.

    Args:
        what: is wrong.
        step: the one that is running or was the last, counted from 1.
        learning_rate: of the phase.
        checkpoint: the last good one, None where there is none yet.
    """
    kept = "There was no checkpoint yet."
    if checkpoint is not None:
        kept = f"The last good checkpoint is kept: {checkpoint}."
    return DivergedError(
        f'The training diverged in phase "{phase}" at step {step} (epoch {epoch:.2f}): {what}. '
        f"{kept}\n"
        f"Lower the learning rate ({learning_rate:g} here), such as --set "
        f"train.learning_rate={learning_rate / 10:.1g}; a lower train.head_rate, "
        "train.warmup=0.1 and smaller weights in method_options help too.\n"
        "Other settings need a fresh start: pass --fresh with them, or choose another --out."
    )
