"""Which rows are hard for a small model (CascadeBERT)."""

from __future__ import annotations

import torch

from de3bert.training.hook import HOOKS, Hook
from de3bert.training.inference import exit_logits

__all__ = ["Difficulty"]


@HOOKS.register("difficulty")
class Difficulty(Hook):
    """`extras["difficult"]`: does the first exit, as the phase before left it, get the row wrong?

    The paper asks several small models of other seeds. One that has been trained for a part of an
    epoch costs less and has not yet learnt its rows by heart.
    """

    def before(self) -> None:
        context = self.context
        said = exit_logits(
            context.model, context.rows, context.encoder, context.label("which rows are hard")
        )[:, 0].argmax(-1)
        labels = torch.tensor([row["labels"] for row in context.rows.rows])
        context.rows.extras["difficult"] = said != labels
