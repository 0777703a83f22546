"""Running a padded batch in chunks of similar length, so that short texts do not pay for long ones.

Training needs batches drawn at random: prototypes follow the last few batches, and batches made of
texts of one length leave prototypes of that length alone (see docs/architecture.md). Grouping by
length therefore happens inside a batch: the same rows, the same loss, less padding.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["length_chunks"]

ROWS = 8  # per chunk: enough for matrix products to be efficient on a CPU
WORTH = 0.8  # chunk only when this share of the padded tokens, or less, is left


def length_chunks(mask: Tensor) -> list[tuple[Tensor, int]] | None:
    """Rows in chunks of similar length, each with its longest length; None when it does not pay.

    Args:
        mask: (rows, tokens), 1 where there is a token.

    Only on a CPU, where time follows the number of tokens, and only for padding on the right, the
    one side that can be cut off.
    """
    if mask.device.type != "cpu" or mask.shape[0] <= ROWS:
        return None
    lengths = mask.sum(1)
    if not torch.equal(mask.bool(), torch.arange(mask.shape[1]) < lengths[:, None]):
        return None
    chunks = [
        (rows, max(1, int(lengths[rows].max()))) for rows in torch.argsort(lengths).split(ROWS)
    ]
    tokens = sum(len(rows) * longest for rows, longest in chunks)
    return chunks if tokens <= WORTH * mask.numel() else None
