"""One full-depth pass over many rows, every exit recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow
from de3bert.progress import track
from de3bert.runtime.engine import Backend

__all__ = ["Record", "record"]


class Record(NamedTuple):
    """What every exit said of every row."""

    logits: NDArray[np.float32]  # (rows, exits, classes)
    distances: NDArray[np.float32] | None  # (rows, exits - 1, classes)
    certainty: NDArray[np.float32] | None  # (rows, exits - 1)


def record(
    backend: Backend,
    rows: Sequence[TokenRow],
    batch_size: int,
    *,
    distances: bool,
    progress: str | None = None,
) -> Record:
    """Logits, if wanted distances, and the certainty of a router where there is one."""
    exits, classes = len(backend.exit_layers), backend.classes
    logits = np.zeros((len(rows), exits, classes), dtype=np.float32)
    far = np.zeros((len(rows), exits - 1, classes), dtype=np.float32) if distances else None
    sure = np.zeros((len(rows), exits - 1), dtype=np.float32) if backend.has_router else None
    order = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
    starts = range(0, len(rows), batch_size)
    for start in track(starts, progress):
        chosen = order[start : start + batch_size]
        state = backend.start([rows[index] for index in chosen])
        for index, layer in enumerate(backend.exit_layers):
            state, logits[chosen, index] = backend.advance(state, layer, read=True)
            if index == exits - 1:
                break  # the final exit has neither
            if far is not None:
                far[chosen, index] = backend.distances(state, layer)
            if sure is not None:
                sure[chosen, index] = backend.certainty(state, layer)
    return Record(logits, far, sure)
