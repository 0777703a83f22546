"""Difficulty-aware regulariser: easy rows are to be surer than hard ones (CascadeBERT)."""

from __future__ import annotations

import torch
from torch import Tensor

from de3bert.exits.signals.formulas import max_probability
from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, ExitBatch

__all__ = ["difficulty_margin", "margin_ranking"]

NAME = "difficulty_margin"
SALT = 3  # keeps its random numbers apart from those of other losses


@LOSSES.register(NAME)
def difficulty_margin(batch: ExitBatch) -> Tensor:
    """Margin ranking of the first exit's confidences, every easy row with a random hard one, ().

    0 when the batch has no easy or no hard row. Reads `difficult`. Option `margin`: 0.5.
    """
    margin = needs.number(batch.options, "margin", 0.5)
    meaning = "is the row hard for small models, (rows,) bool"
    difficult = needs.extra(batch, "difficult", NAME, meaning).bool()
    confidence = max_probability(batch.exit_logits[:, 0])
    easy, hard = confidence[~difficult], confidence[difficult]
    if len(easy) == 0 or len(hard) == 0:
        return 0.0 * confidence.sum()  # with a gradient of 0: the only term of a step, maybe
    generator = batch.clock.generator(SALT)
    partners = torch.randint(len(hard), (len(easy),), generator=generator)
    return margin_ranking(easy, hard[partners.to(hard.device)], margin)


def margin_ranking(easy: Tensor, hard: Tensor, margin: float) -> Tensor:
    """Mean of max(0, margin - (c_easy - c_hard)) over pairs. (pairs,), (pairs,) -> ()"""
    return (margin - (easy - hard)).relu().mean()
