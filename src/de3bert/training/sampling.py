"""The order of training rows, fixed by seed and epoch alone.

The Trainer's own sampler draws from the generator that dropout uses as well, so a training resumed
within an epoch would reshuffle: some rows twice, others never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.utils.data import Sampler
from transformers.trainer_pt_utils import get_length_grouped_indices

__all__ = ["EpochOrder"]


class EpochOrder(Sampler[int]):
    """Indices of rows, shuffled by the seed and the number of the epoch.

    Only whole batches: half of a prototype is the last batch, and a rest of two rows must not be
    that batch. The rows left out are others in every epoch.

    Args:
        lengths: tokens of each row.
        batch: rows per batch.
        group: rows per optimiser step to take from near lengths; None draws all rows at random,
            which prototypes need (see `de3bert.model.chunks`).
        epoch: gives the epochs done so far; a part of one does not count.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch: int,
        group: int | None,
        seed: int,
        epoch: Callable[[], float],
    ) -> None:
        self.lengths = list(lengths)
        self.batch = batch
        self.group = group
        self.seed = seed
        self.epoch = epoch

    def __len__(self) -> int:
        rows = len(self.lengths)
        return rows - rows % self.batch if rows >= self.batch else rows

    def __iter__(self) -> Iterator[int]:
        # Far apart, so that the second epoch of one seed is not the first of the next.
        generator = torch.Generator().manual_seed(self.seed + 1_000_003 * int(self.epoch()))
        shuffled = torch.randperm(len(self.lengths), generator=generator).tolist()[: len(self)]
        if self.group is None:
            return iter(shuffled)
        lengths = [self.lengths[row] for row in shuffled]
        grouped = get_length_grouped_indices(lengths, self.group, generator=generator)
        return iter([shuffled[index] for index in grouped])
