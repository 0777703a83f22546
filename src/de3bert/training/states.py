"""What every exit reads of many rows, kept for fitting: one pass through a frozen encoder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from de3bert.data.tokens import TokenRow, by_length
from de3bert.errors import De3Error
from de3bert.model import EarlyExitModel
from de3bert.model.failures import failures_told
from de3bert.model.heads import Reading
from de3bert.model.pooling import Pooling
from de3bert.model.tokens import TextEncoder
from de3bert.progress import track

__all__ = ["States", "read_states"]

Model = EarlyExitModel
Singles = NDArray[np.float32]

BATCH = 64
IN_MEMORY = 1 << 30  # bytes of states that are kept in memory; more are mapped from a file


@dataclass(frozen=True, eq=False)
class States:
    """The vectors of all exits before the last, and what the final exit says.

    Attributes:
        vectors: by name of a pooling, (exits - 1, rows, hidden) each; mapped from a file that has
            no name, and is gone with the process, where there are many.
        logits: of the final exit, (rows, classes).
    """

    vectors: dict[str, Singles]
    logits: Singles

    def answers(self) -> Singles:
        """The final exit's probabilities, which serve as labels where there are none."""
        shifted = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)


@torch.inference_mode()
def read_states(
    model: Model,
    encoder: TextEncoder,
    rows: Sequence[TokenRow],
    poolings: dict[str, Pooling],
    folder: Path,
    *,
    batch_size: int = BATCH,
    progress: str | None = None,
) -> States:
    """One pass in evaluation mode, in batches of similar length.

    Args:
        poolings: what the exits may read, by name.
        folder: where the file lies, if it takes one.
        progress: the label of a progress bar.

    Raises:
        De3Error: some state is not finite, or there is not enough space for them.
    """
    config = model.config
    layers = list(config.exit_layers or [])
    shape = (len(layers) - 1, len(rows), config.hidden_size)
    vectors = {name: _room(shape, folder) for name in poolings}
    logits = np.zeros((len(rows), len(config.label_names)), dtype=np.float32)
    was_training = model.training
    model.eval()
    lengths = [len(row["input_ids"]) for row in rows]
    for chosen in track(by_length(lengths, batch_size), progress):
        batch = encoder.pad([rows[index] for index in chosen])
        given = {name: tensor.to(model.device) for name, tensor in batch.items()}
        with failures_told():
            prepared = model.encoder.prepare(**given)
            hidden, index = prepared.embedded, 0
            for number in range(1, model.encoder.depth + 1):
                hidden = model.encoder.layer(prepared, number, hidden)
                if number not in layers:
                    continue
                read = model.encoder.readable(hidden, number)
                if number == layers[-1]:
                    pooled = model.pooling(read, prepared.mask, index)
                    said = model.classify(Reading(pooled, None, read, prepared.mask), number)
                    logits[chosen] = said.float().cpu().numpy()
                else:
                    for name, pooling in poolings.items():
                        vectors[name][index, chosen] = _array(pooling(read, prepared.mask, index))
                index += 1
    model.train(was_training)
    _check_numbers(vectors, logits, layers)
    return States(vectors, logits)


def _array(tensor: Tensor) -> Singles:
    return tensor.float().cpu().numpy()


def _room(shape: tuple[int, int, int], folder: Path) -> Singles:
    """Zeros; many of them in a file. Its space is reserved first: a full disk is an error then, and
    not the end of the process at some later write.
    """
    size = 4 * int(np.prod(shape))
    if size <= IN_MEMORY:
        return np.zeros(shape, dtype=np.float32)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise De3Error(
                f"There is not enough space in {folder} for the states of {shape[1]:,} rows, which "
                f"take {size / 1e9:.1f} GB while exits are fitted ({error.strerror}). Free some "
                "space, or take fewer rows (--rows)."
            ) from error
        return np.memmap(file, dtype=np.float32, mode="r+", shape=shape)


def _check_numbers(vectors: dict[str, Singles], logits: Singles, layers: Sequence[int]) -> None:
    for states in vectors.values():
        for layer, values in zip(layers, states, strict=False):
            bad = ~np.isfinite(values).all(axis=1)
            if bad.any():
                raise _no_numbers(bad, f"at layer {layer}")
    bad = ~np.isfinite(logits).all(axis=1)
    if bad.any():
        raise _no_numbers(bad, "at the end")


def _no_numbers(bad: Any, where: str) -> De3Error:
    first = int(np.flatnonzero(bad)[0]) + 1
    return De3Error(
        f"The model's states for {int(bad.sum())} of {len(bad)} texts are not finite {where} (the "
        f"first is row {first}), so no exit can be fitted. The weights are damaged, or too large "
        "for the precision they run in."
    )
