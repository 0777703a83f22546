"""The vectors that distances are taken of, and the prototypes they are taken to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow, by_length
from de3bert.errors import UsageError
from de3bert.progress import track
from de3bert.runtime.manifest import is_bundle
from de3lab.analysis.subject import Subject

if TYPE_CHECKING:
    from de3bert.runtime.torch_backend import TorchBackend

__all__ = ["Representations", "representations"]

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Representations:
    """What one exit makes of the rows.

    Attributes:
        layer: where the exit is.
        vectors: (rows, hidden), projected where the model has prototypical networks, else pooled.
        projected: which of the two they are.
        prototypes: (classes, hidden), NaN for a class never seen in training; None for a model
            that has none.
    """

    layer: int
    vectors: Floats
    projected: bool
    prototypes: Floats | None


def representations(
    subject: Subject, rows: Sequence[TokenRow], layers: Sequence[int]
) -> list[Representations]:
    """The vectors of the exits at `layers`, from one pass that goes no further than the last."""
    if is_bundle(subject.path):
        raise UsageError(
            f"{subject.path} is a bundle, which does not expose its vectors. Give the model folder "
            "it was exported from."
        )
    backend: Any = subject.classifier.backend
    internal = tuple(backend.exit_layers[:-1])
    if strange := [layer for layer in layers if layer not in internal]:
        at = ", ".join(map(str, internal)) or "no layer"
        raise UsageError(
            f"{subject.path} has no exit before the last at layer {strange[0]}. There are: {at}."
        )
    label = f"reading {subject.label}" if subject.progress else None
    vectors = _vectors(backend, rows, sorted(set(layers)), subject.batch_size, label)
    projected = backend.model.projectors is not None
    return [
        Representations(layer, vectors[layer], projected, _prototypes(backend, layer))
        for layer in layers
    ]


def _vectors(
    backend: TorchBackend,
    rows: Sequence[TokenRow],
    layers: Sequence[int],
    batch_size: int,
    progress: str | None,
) -> dict[int, Floats]:
    import torch

    found = {layer: np.zeros((len(rows), backend.info.hidden_size), np.float32) for layer in layers}
    lengths = [len(row["input_ids"]) for row in rows]
    for chosen in track(by_length(lengths, batch_size), progress):
        state = backend.start([rows[index] for index in chosen])
        # Exits in between are passed one by one: some heads remember what they have read.
        for layer in (each for each in backend.exit_layers if each <= layers[-1]):
            state, _ = backend.advance(state, layer, read=True)
            if layer in found:
                assert state.pooled is not None  # the exit was read
                with torch.inference_mode():
                    index = backend.model.exit_index(layer)
                    vectors = backend.model.project(state.pooled, index)
                found[layer][chosen] = vectors.float().cpu().numpy()
    return found


def _prototypes(backend: TorchBackend, layer: int) -> Floats | None:
    bank = backend.model.prototypes
    if bank is None:
        return None
    vectors = bank.vectors[backend.model.exit_index(layer)].float().cpu().numpy().copy()
    vectors[~bank.initialised.cpu().numpy()] = np.nan
    return np.asarray(vectors)
