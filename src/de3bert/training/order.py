"""The order of training rows, fixed by seed and epoch alone.

The Trainer's own sampler draws from the generator that dropout uses as well, so a training resumed
within an epoch would shuffle anew: some rows twice, others never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset, Sampler
from transformers.trainer_pt_utils import get_length_grouped_indices

from de3bert.training.checkpoints import GuardedTrainer
from de3bert.training.rows import Rows

__all__ = ["EpochOrder", "OrderedTrainer"]


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


class OrderedTrainer(GuardedTrainer):
    """The Trainer with `EpochOrder`: a resumed training sees the rows it would have seen."""

    head_learning_rate: float | None = None  # None: the encoder's

    def _get_train_sampler(self, train_dataset: Dataset[Any] | None = None) -> EpochOrder:
        rows = self.train_dataset if train_dataset is None else train_dataset
        assert isinstance(rows, Rows)  # `fit` gives no other
        step = self.args.train_batch_size * self.args.gradient_accumulation_steps
        group = step if self.args.train_sampling_strategy == "group_by_length" else None
        return EpochOrder(
            rows.lengths,
            self.args.train_batch_size,
            group,
            self.args.seed,
            lambda: self.state.epoch or 0.0,
        )

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """As usual, with rates of their own for parts that start from nothing.

        Parts that say they are `fresh` (heads and routers) learn at the recipe's
        `head_learning_rate`. Projectors do not: with the center loss alone, nothing but slowness
        keeps them from mapping all rows to one point. A loss that learns states its own rate.
        """
        optimizer = super().create_optimizer(model)
        parts = list(self.model.modules())  # type: ignore[union-attr]  # `fit` gives a model
        if self.head_learning_rate is not None:
            fresh = [part for part in parts if getattr(part, "fresh", False)]
            own = (each for part in fresh for each in part.parameters())
            _set_rate(optimizer, own, self.head_learning_rate)
        for part in parts:
            rate = getattr(part, "learning_rate", None)
            if isinstance(rate, float):
                _set_rate(optimizer, part.parameters(), rate, weight_decay=0.0)
        return optimizer


def _set_rate(
    optimizer: torch.optim.Optimizer,
    parameters: Iterable[torch.nn.Parameter],
    rate: float,
    **changed: float,
) -> None:
    """Moves parameters to groups of their own, which keep everything else of the old ones."""
    names = {id(parameter) for parameter in parameters}
    for group in list(optimizer.param_groups):
        own = [p for p in group["params"] if id(p) in names]
        if own:
            group["params"] = [p for p in group["params"] if id(p) not in names]
            settings = {key: value for key, value in group.items() if key != "params"}
            optimizer.add_param_group({**settings, "params": own, "lr": rate, **changed})
