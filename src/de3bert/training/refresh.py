"""Prototypes as class means over all training rows, not moving means of the last batches."""

from __future__ import annotations

import torch
from torch import Tensor

from de3bert.data.tokens import by_length
from de3bert.model import EarlyExitModel
from de3bert.model.tokens import TextEncoder
from de3bert.progress import track
from de3bert.training.rows import Rows, collate

__all__ = ["refresh_prototypes"]


@torch.no_grad()
def refresh_prototypes(
    model: EarlyExitModel,
    rows: Rows,
    encoder: TextEncoder,
    batch_size: int = 64,
    progress: str | None = None,
) -> None:
    """One pass in evaluation mode; each prototype becomes the mean of its class."""
    if model.prototypes is None:
        return
    model.eval()
    sums = torch.zeros_like(model.prototypes.vectors)
    counts = torch.zeros_like(model.prototypes.counts)
    for chosen in track(by_length(rows.lengths, batch_size), progress):
        batch = collate(encoder, [rows[index] for index in chosen])
        placed = {k: v.to(model.device) for k, v in batch.items() if k != "extras"}
        labels: Tensor = placed.pop("labels")
        projected = model(**placed).projected
        belongs = torch.nn.functional.one_hot(labels, len(counts))
        sums += torch.einsum("rk,red->ekd", belongs.float(), projected.float())
        counts += belongs.sum(0)
    seen = counts > 0
    means = sums / counts.clamp_min(1)[None, :, None]
    vectors = model.prototypes.vectors
    vectors.copy_(torch.where(seen[None, :, None], means, vectors))
    model.prototypes.initialised |= seen
    model.config.prototype_means = "all rows"
