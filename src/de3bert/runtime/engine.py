"""The engine: runs a batch from exit to exit, and drops the rows that have left.

It knows nothing of tensors: a back end runs the layers and hands over each exit's outputs as
arrays; the policy, the same object as in replay, decides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import Encoded, TextInput, TokenRow
from de3bert.exits import ExitView, Policy
from de3bert.exits.bandit import CONFIDENCE, Bandit
from de3bert.exits.keeping import Keeper
from de3bert.runtime.facts import Facts

__all__ = ["Backend", "Outcome", "run_batch", "run_in_order", "run_kept", "run_sorted"]


class Backend(Protocol):
    """What runs the layers."""

    facts: Facts
    exit_layers: tuple[int, ...]  # the last one is the full depth
    classes: int
    has_prototypes: bool
    has_router: bool

    @property
    def prototypes_unset(self) -> tuple[str, ...]:
        """Classes that were never seen in training."""

    @property
    def encoder(self) -> Callable[[Sequence[TextInput]], Encoded]:
        """Makes token rows of texts."""

    def size(self) -> dict[str, Any]:
        """How large the model is, in plain JSON values."""

    def start(self, rows: Sequence[TokenRow]) -> Any:
        """Embeds a padded batch."""

    def advance(
        self, state: Any, layer: int, *, read: bool
    ) -> tuple[Any, NDArray[np.float32] | None]:
        """Runs on to the exit at `layer`: the state there, and its logits (rows, classes).

        With `read=False` nobody looks at this exit, and there are no logits.
        """

    def distances(self, state: Any, layer: int) -> NDArray[np.float32]:
        """Distances to the prototypes of the exit at `layer`, where `state` is; (rows, classes)."""

    def certainty(self, state: Any, layer: int) -> NDArray[np.float32]:
        """How sure the router of the exit at `layer` is, where `state` is; in [0, 1], (rows,)."""

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
        state, logits = backend.advance(state, layer, read=read)
        if logits is None:
            continue
        if layer == final:
            leave = np.ones(len(rows), dtype=np.bool_)
        else:
            # Distances cost time; the policy asks for them only where the logits do not decide.
            fetch = functools.partial(backend.distances, state, layer)
            view = ExitView(
                layer,
                logits,
                fetch=fetch if policy.needs_distances else None,
                certainty=backend.certainty(state, layer) if policy.needs_certainty else None,
            )
            leave, fold = policy.step(fold, view)
            if not leave.any():
                continue
        outcome.exit_layers[rows[leave]] = layer
        outcome.logits[rows[leave]] = logits[leave]
        if leave.all():
            break
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


def run_in_order(backend: Backend, rows: Sequence[TokenRow], bandit: Bandit) -> Outcome:
    """Runs rows one by one, each with the arm that the rows before it have led to."""
    parts = [_run_trial(backend, row, bandit) for row in rows]
    return Outcome(
        np.concatenate([part.exit_layers for part in parts]),
        np.concatenate([part.logits for part in parts]),
    )


def run_kept(
    backend: Backend, rows: Sequence[TokenRow], keeper: Keeper, batch_size: int
) -> Outcome:
    """Runs rows in their order, in the blocks between two moves of the threshold."""
    parts, start = [], 0
    while start < len(rows):
        block = rows[start : start + keeper.room]
        part = run_sorted(backend, block, Policy(keeper.present), batch_size)
        keeper.learn(part.exit_layers.tolist())
        parts.append(part)
        start += len(block)
    return Outcome(
        np.concatenate([part.exit_layers for part in parts]),
        np.concatenate([part.logits for part in parts]),
    )


def _run_trial(backend: Backend, row: TokenRow, bandit: Bandit) -> Outcome:
    trial = bandit.trial()
    part = run_batch(backend, [row], Policy(trial))
    layer = int(part.exit_layers[0])
    last = float(CONFIDENCE(ExitView(layer, part.logits))[0])
    first = last if trial.first is None else trial.first  # None: a model with one exit
    bandit.learn(trial.number, backend.exit_layers.index(layer), first, last)
    return part
