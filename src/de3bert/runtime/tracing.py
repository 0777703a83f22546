"""One full-depth pass over many rows, every exit recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow, pieces_of, sentence_of, units_of
from de3bert.exits import Trace
from de3bert.progress import track
from de3bert.runtime.engine import Backend, in_batches

__all__ = ["ExitOutputs", "record", "trace_rows"]


class ExitOutputs(NamedTuple):
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
    halts: NDArray[np.int64] | None = None,
) -> ExitOutputs:
    """Logits, if wanted distances, and the certainty of a router where there is one.

    Args:
        halts: of words the layer behind which their states stay, (units,); None: none does.
    """
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
            if halts is not None and (done := halts[units] <= layer).any():
                state = backend.halt(state, done)
    return ExitOutputs(logits, far, sure)


def trace_rows(
    backend: Backend,
    rows: Sequence[TokenRow],
    batch_size: int,
    *,
    distances: bool,
    labels: NDArray[np.int64] | None = None,
    info: Mapping[str, Any] | None = None,
    progress: str | None = None,
    halts: NDArray[np.int64] | None = None,
) -> Trace:
    """The same as a trace of these rows.

    Args:
        labels: of the units, (units,).
        info: what made it, besides what the model says of itself.
    """
    sentence, tokens = sentence_of(rows), [len(row["input_ids"]) for row in rows]
    made: dict[str, Any] = {
        "method": backend.info.method,
        "method_options": dict(backend.info.method_options),
    }
    if sentence is not None:
        pieces = [pieces_of(row) for row in rows]
        made["special_tokens"] = tokens[0] - int(pieces[0].sum())
        tokens = np.concatenate(pieces).tolist()
    found = record(backend, rows, batch_size, distances=distances, progress=progress, halts=halts)
    return Trace(
        logits=found.logits,
        distances=found.distances,
        labels=labels,
        tokens=np.array(tokens, dtype=np.int32),
        exit_layers=backend.exit_layers,
        label_names=backend.info.label_names,
        info={**made, **(info or {})},
        certainty=found.certainty,
        base_depth=backend.info.base_depth,
        sentence=sentence,
    )
