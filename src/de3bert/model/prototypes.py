"""Class prototypes at every internal exit: moving class means, kept as buffers without gradient."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["PrototypeBank", "cosine_distance"]

TINY = 1e-12  # keeps a zero vector from dividing by zero; far below any real norm


def cosine_distance(vectors: Tensor, prototypes: Tensor) -> Tensor:
    """1 - cos of every vector with every prototype of its exit, in [0, 2].

    Computed as |v - p|^2 / 2 of the unit vectors v and p, which is the same number: prototypes
    often lie close, and 1 - cos of close vectors keeps none of the digits of fp32.

    Args:
        vectors: (rows, exits, hidden).
        prototypes: (exits, classes, hidden).

    Returns:
        (rows, exits, classes). A zero vector has no direction; its distance to everything is 1.
    """
    vectors, prototypes = vectors.float().transpose(0, 1), prototypes.float()
    ours, theirs = (nn.functional.normalize(v, dim=-1, eps=TINY) for v in (vectors, prototypes))
    with _full_precision(vectors):  # differences themselves: the faster way is the product again
        lengths = torch.cdist(ours, theirs, compute_mode="donot_use_mm_for_euclid_dist")
    none = ~vectors.any(-1, keepdim=True) | ~prototypes.any(-1)[:, None]
    return torch.where(none, 1.0, lengths.square() / 2).transpose(0, 1)


class PrototypeBank(nn.Module):
    """The prototypes of all internal exits.

    Update per class from the mini-batch's class means c_k, rate gamma (the paper: 0.5):

        cp_k <- (1 - gamma) cp_k + gamma c_k

    The first mean seen is the start, a class absent from the batch is left alone, and under
    distributed training sums and counts are reduced over all ranks, so every rank holds the same
    prototypes.
    """

    vectors: Tensor  # (exits, classes, hidden), always fp32
    initialised: Tensor  # (classes,)
    counts: Tensor  # (classes,), rows seen

    def __init__(self, exits: int, classes: int, hidden_size: int, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma
        # Persistent: a buffer that is not saved comes back as garbage from `from_pretrained`.
        self.register_buffer("vectors", torch.zeros(exits, classes, hidden_size))
        self.register_buffer("initialised", torch.zeros(classes, dtype=torch.bool))
        self.register_buffer("counts", torch.zeros(classes, dtype=torch.long))

    @torch.no_grad()
    def update(self, projected: Tensor, labels: Tensor) -> None:
        """Moves the prototypes towards the class means of a batch.

        Args:
            projected: (rows, exits, hidden), the outputs of the prototypical networks.
            labels: (rows,).
        """
        belongs = nn.functional.one_hot(labels, self.counts.shape[0]).float()  # (rows, classes)
        with _full_precision(projected):
            sums = torch.einsum("rk,red->ekd", belongs, projected.detach().float())
        counts = belongs.sum(0)
        if dist.is_available() and dist.is_initialized():
            dist.all_reduce(sums)
            dist.all_reduce(counts)
        present = counts > 0
        means = sums / counts.clamp_min(1.0)[None, :, None]
        rate = torch.where(self.initialised, self.gamma, 1.0)[None, :, None]
        moved = (1.0 - rate) * self.vectors + rate * means
        self.vectors.copy_(torch.where(present[None, :, None], moved, self.vectors))
        self.initialised |= present
        self.counts += counts.long()

    def forward(self, projected: Tensor, exit_index: int | None = None) -> Tensor:
        """Distances of (rows, exits, hidden) to all prototypes, (rows, exits, classes).

        With `exit_index` the input holds that one exit alone. A class whose prototype was never set
        has no distance: NaN.
        """
        vectors = self.vectors if exit_index is None else self.vectors[exit_index : exit_index + 1]
        distances = cosine_distance(projected, vectors)
        return distances.masked_fill(~self.initialised, float("nan"))

    @torch.no_grad()
    def separation(self) -> Tensor:
        """The smallest distance between two prototypes of each exit, (exits,).

        The centre loss attracts and never repels: a value falling towards 0 shows classes merging.
        """
        between = cosine_distance(self.vectors.transpose(0, 1), self.vectors)  # (K, exits, K)
        classes = between.shape[0]
        same = torch.eye(classes, dtype=torch.bool, device=between.device)[:, None, :]
        return between.masked_fill(same, float("inf")).amin(dim=(0, 2))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> PrototypeBank:
        """Moves with the model, but stays fp32 under `half()` or `to(torch.bfloat16)`."""
        vectors = self.vectors
        super()._apply(fn, recurse)
        if self.vectors.dtype != vectors.dtype:
            self.vectors = vectors.to(self.vectors.device)
        return self


def _full_precision(like: Tensor) -> torch.autocast:
    """Autocast would run the products in half precision, too coarse for distances near 0."""
    return torch.autocast(like.device.type, enabled=False)
