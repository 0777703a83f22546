"""What a model says of many rows, in one pass without gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from de3bert.data.tokens import by_length
from de3bert.model import EarlyExitModel
from de3bert.model.failures import failures_told
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.tokens import TextEncoder
from de3bert.progress import track
from de3bert.training.rows import Rows, collate

__all__ = ["exit_logits", "over_rows"]

BATCH = 64


@torch.no_grad()
def over_rows(
    model: EarlyExitModel,
    rows: Rows,
    encoder: TextEncoder,
    read: Callable[[EarlyExitOutput], Tensor],
    *,
    batch_size: int = BATCH,
    progress: str | None = None,
) -> Tensor:
    """`read` of the model's output for every unit, in the order of the rows. (units, ...)

    Args:
        progress: the label of a progress bar; None for no bar.
    """
    was_training = model.training
    model.eval()
    batches, found = by_length(rows.lengths, batch_size), []
    for chosen in track(batches, progress):
        batch = collate(encoder, [rows[index] for index in chosen])
        given = {k: v.to(model.device) for k, v in batch.items() if k not in ("labels", "extras")}
        with failures_told():
            output = model(**given)
        assert isinstance(output, EarlyExitOutput)
        found.append(read(output).float().cpu())
    model.train(was_training)
    # Each row's units are next to each other; the rows go back to their places with them.
    order = np.concatenate(batches)
    owners = torch.from_numpy(np.repeat(order, np.asarray(rows.units)[order]))
    return torch.cat(found)[torch.argsort(owners, stable=True)]


def exit_logits(
    model: EarlyExitModel,
    rows: Rows,
    encoder: TextEncoder,
    progress: str | None = None,
) -> Tensor:
    """Logits of all exits, (units, exits, classes)."""

    def read(output: EarlyExitOutput) -> Tensor:
        assert output.exit_logits is not None
        return output.exit_logits

    return over_rows(model, rows, encoder, read, progress=progress)
