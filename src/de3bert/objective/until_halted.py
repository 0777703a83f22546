"""Cross-entropy of words that halt (TOKEE): an exit learns from the words that still get to it."""

from __future__ import annotations

import torch
from torch import Tensor

from de3bert.objective.objective import LOSSES, ExitBatch
from de3bert.objective.per_row import cross_entropies


@LOSSES.register("until_halted")
def until_halted(batch: ExitBatch) -> Tensor:
    """Mean cross-entropy over the words that reach an exit, (exits,).

    `extras["reached"]` (rows,) is how many exits a word gets to, the one where it halts included:
    its tag is final there, so that exits above have nothing to say of it. Without it no word halts.
    """
    values = cross_entropies(batch.exit_logits, batch.labels)
    if "reached" not in batch.extras:
        return values.mean(0)
    numbers = torch.arange(values.shape[1], device=values.device)
    counts = (numbers < batch.extras["reached"][:, None]).to(values.dtype)
    return (values * counts).sum(0) / counts.sum(0).clamp_min(1.0)
