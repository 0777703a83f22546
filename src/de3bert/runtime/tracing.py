"""One full-depth pass over many rows, every exit recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow, units_of
from de3bert.progress import track
from de3bert.runtime.engine import Backend, in_batches

__all__ = ["Record", "record"]


class Record(NamedTuple):
    """What every exit said of every unit: of texts, or of the words of sentences."""

    logits: NDArray[np.float32]  # (units, exits, classes)
    distances: NDArray[np.float32] | None  # (units, exits - 1, classes)
    certainty: NDArray[np.float32] | None  # (units, exits - 1)


def record(
    backend: Backend,
    rows: Sequence[TokenRow],
    batch_size: int,
    *,
    distances: bool,
    progress: str | None = None,
) -> Record:
    """Logits, if wanted distances, and the certainty of a router where there is one."""
    exits, classes, total = len(backend.exit_layers), backend.classes, int(units_of(rows).sum())
    logits = np.zeros((total, exits, classes), dtype=np.float32)
    far = np.zeros((total, exits - 1, classes), dtype=np.float32) if distances else None
    sure = np.zeros((total, exits - 1), dtype=np.float32) if backend.has_router else None
    for chosen, units in track(in_batches(rows, batch_size), progress):
        state = backend.start([rows[index] for index in chosen])
        for index, layer in enumerate(backend.exit_layers):
            state, logits[units, index] = backend.advance(state, layer, read=True)
            if index == exits - 1:
                break  # the final exit has neither
            if far is not None:
                far[units, index] = backend.distances(state, layer)
            if sure is not None:
                sure[units, index] = backend.certainty(state, layer)
    return Record(logits, far, sure)
