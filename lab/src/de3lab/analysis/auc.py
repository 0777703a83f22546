"""How well a signal tells right answers from wrong ones: ROC-AUC, and its doubt from the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ordered"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ordered:
    """A signal in rising order, ready to be weighed by how often each row was drawn.

    Attributes:
        order: the row at each place, (rows,).
        right: whether the answer there is right, (rows,).
        below: how many places have a lower value, (rows,).
        through: how many have a lower or equal one, (rows,).
    """

    order: NDArray[np.int64]
    right: NDArray[np.bool_]
    below: NDArray[np.int64]
    through: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any], right: NDArray[np.bool_]) -> Ordered:
        """From the signal, lower is safer, and whether each answer is right; both (rows,)."""
        order = np.argsort(values, kind="stable")
        rising = values[order]
        below = np.searchsorted(rising, rising, side="left")
        through = np.searchsorted(rising, rising, side="right")
        return cls(order, right[order], below, through)

    @property
    def plain(self) -> float:
        """The AUC with every row once; NaN where all answers are right, or all wrong."""
        return float(self.auc(np.ones((1, len(self.order)), dtype=np.int64))[0])

    def auc(self, counts: Counts) -> Floats:
        """P(signal of a right answer < that of a wrong one) + half of P(equal).

        Each row counts as often as it was drawn, (draws, rows) -> (draws,). NaN where a draw has
        no right answer or no wrong one.
        """
        drawn = counts[:, self.order]
        right = np.where(self.right, drawn, 0)
        running = np.pad(np.cumsum(right, axis=1), ((0, 0), (1, 0)))  # right answers before a place
        beaten = 0.5 * (running[:, self.below] + running[:, self.through])
        wrong = drawn - right
        pairs = running[:, -1] * wrong.sum(axis=1)
        won = (wrong * beaten).sum(axis=1)
        return np.asarray(np.divide(won, pairs, out=np.full(len(counts), np.nan), where=pairs > 0))
