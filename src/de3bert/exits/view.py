"""What a rule may look at: the outputs of one exit for the rows that are still alive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExitView"]


@dataclass(frozen=True, eq=False)
class ExitView:
    """One exit's outputs.

    Signals act on the last axis, so logits of shape (rows, exits, classes) give a whole matrix of
    signals at once; `layer` means nothing then.

    Attributes:
        layer: the layer this exit sits on, counted from 1.
        logits: (rows, classes).
        distances: cosine distance to each class prototype, (rows, classes), or None.
        fetch: computes the distances, in place of `distances`. They cost time, and where the
            logits decide alone it is not called.
        certainty: how sure a router is that this exit is right, in [0, 1], (rows,), or None.
    """

    layer: int
    logits: NDArray[np.floating[Any]]
    distances: NDArray[np.floating[Any]] | None = None
    fetch: Callable[[], NDArray[np.floating[Any]]] | None = None
    certainty: NDArray[np.floating[Any]] | None = None

    def fetched(self) -> ExitView:
        """The same view with its distances there; itself when there is nothing to fetch."""
        if self.fetch is None:
            return self
        return ExitView(self.layer, self.logits, self.fetch(), certainty=self.certainty)
