"""The engine: runs a batch from exit to exit, and drops the rows that have left.

It knows nothing of tensors: a back end runs the layers and hands over each exit's outputs as
arrays; the policy, the same object as in replay, decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from de3bert.exits import ExitView, Policy

__all__ = ["Backend", "Outcome", "run_batch", "run_sorted"]

TokenRow = dict[str, list[int]]


class Backend(Protocol):
    """What runs the layers."""

    exit_layers: tuple[int, ...]  # the last one is the full depth
    classes: int

    def start(self, rows: Sequence[TokenRow]) -> Any:
        """Embeds a padded batch."""

    def advance(
        self, state: Any, layer: int, *, read: bool, distances: bool
    ) -> tuple[Any, NDArray[np.float32] | None, NDArray[np.float32] | None]:
        """Runs on to the exit at `layer`: state, logits and distances, both (rows, classes).

        With `read=False` nobody looks at this exit, so nothing but the layers is computed.
        """

    def keep(self, state: Any, keep: NDArray[np.bool_]) -> Any:
        """Drops the rows that have left."""


@dataclass(frozen=True)
class Outcome:
    """Where each row left and what it said there."""

    exit_layers: NDArray[np.int64]  # (rows,)
    logits: NDArray[np.float32]  # (rows, classes), of the exit taken


def run_batch(backend: Backend, batch: Sequence[TokenRow], policy: Policy) -> Outcome:
    """Runs one batch; each row stops at the exit its policy allows, whatever the others do."""
    *internal, final = backend.exit_layers
    fold = policy.start(len(batch), internal, final)
    rows = np.arange(len(batch))
    outcome = Outcome(
        np.zeros(len(batch), dtype=np.int64),
        np.zeros((len(batch), backend.classes), dtype=np.float32),
    )
    state = backend.start(batch)
    for layer in backend.exit_layers:
        read = layer == final or policy.reads(layer)
        wanted = policy.needs_distances and layer != final
        state, logits, distances = backend.advance(state, layer, read=read, distances=wanted)
        if logits is None:
            continue
        leave = np.ones(len(rows), dtype=np.bool_)
        if layer != final:
            leave, fold = policy.step(fold, ExitView(layer, logits, distances))
        outcome.exit_layers[rows[leave]] = layer
        outcome.logits[rows[leave]] = logits[leave]
        if leave.all():
            break
        if leave.any():
            rows, fold = rows[~leave], policy.keep(fold, ~leave)
            state = backend.keep(state, ~leave)
    return outcome


def run_sorted(
    backend: Backend, rows: Sequence[TokenRow], policy: Policy, batch_size: int
) -> Outcome:
    """Runs many rows in batches of similar length (less padding); results in input order."""
    order = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
    exit_layers = np.zeros(len(rows), dtype=np.int64)
    logits = np.zeros((len(rows), backend.classes), dtype=np.float32)
    for start in range(0, len(rows), batch_size):
        chosen = order[start : start + batch_size]
        part = run_batch(backend, [rows[index] for index in chosen], policy)
        exit_layers[chosen], logits[chosen] = part.exit_layers, part.logits
    return Outcome(exit_layers, logits)
