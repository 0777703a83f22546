"""One full-depth pass over many rows, every exit recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from de3bert.data.tokens import TokenRow
from de3bert.runtime.engine import Backend

__all__ = ["record"]


def record(
    backend: Backend,
    rows: Sequence[TokenRow],
    batch_size: int,
    *,
    distances: bool,
    progress: str | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Logits (rows, exits, classes) and, if wanted, distances (rows, exits - 1, classes)."""
    exits, classes = len(backend.exit_layers), backend.classes
    logits = np.zeros((len(rows), exits, classes), dtype=np.float32)
    far = np.zeros((len(rows), exits - 1, classes), dtype=np.float32) if distances else None
    order = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
    starts = range(0, len(rows), batch_size)
    hidden = progress is None
    for start in track(starts, progress or "", disable=hidden, console=Console(stderr=True)):
        chosen = order[start : start + batch_size]
        state = backend.start([rows[index] for index in chosen])
        for index, layer in enumerate(backend.exit_layers):
            state, logits[chosen, index] = backend.advance(state, layer, read=True)
            if far is not None and index < exits - 1:
                far[chosen, index] = backend.distances(state, layer)
    return logits, far
