"""The engine: runs a batch from exit to exit, and drops the rows that have left.

A row is a text, or a sentence whose units are words: what an exit says has a row for every unit.
With words that halt one by one a sentence leaves when all of them are done. Layers are computed for
all tokens of a sentence that is still there and halted words are put back, so that time follows the
sentences and not the words; word-layers are what the authors count.

It knows nothing of tensors: a back end runs the layers and returns each exit's outputs as
arrays; the policy, the same object as in replay, decides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import Encoded, TokenRow, by_length, sentence_of, units_of
from de3bert.exits import ExitView, Policy
from de3bert.exits.bandit import CONFIDENCE_SIGNAL, Bandit
from de3bert.exits.exit_state import ExitState
from de3bert.exits.keeping import Keeper
from de3bert.runtime.model_info import ModelInfo
from de3bert.tasks.task import Outcome

__all__ = [
    "AnswersAlone",
    "Backend",
    "in_batches",
    "run_batch",
    "run_in_order",
    "run_kept",
    "run_sorted",
    "run_stretches",
]


class Backend(Protocol):
    """What runs the layers."""

    info: ModelInfo
    exit_layers: tuple[int, ...]  # the last one is the full depth
    classes: int
    has_prototypes: bool
    has_router: bool

    @property
    def prototypes_unset(self) -> tuple[str, ...]:
        """Classes that were never seen in training."""

    @property
    def encoder(self) -> Callable[[Sequence[Any]], Encoded]:
        """Makes token rows of texts, or of sentences."""

    def size(self) -> dict[str, Any]:
        """How large the model is, in plain JSON values."""

    def start(self, rows: Sequence[TokenRow]) -> Any:
        """Embeds a padded batch."""

    def advance(
        self, state: Any, layer: int, *, read: bool
    ) -> tuple[Any, NDArray[np.float32] | None]:
        """Runs on to the exit at `layer`: the state there, and its logits (units, classes).

        With `read=False` this exit is not read, and there are no logits.
        """

    def distances(self, state: Any, layer: int) -> NDArray[np.float32]:
        """Distances to the prototypes of the exit at `layer`, where `state` is, (units, classes)"""

    def certainty(self, state: Any, layer: int) -> NDArray[np.float32]:
        """How sure the router of the exit at `layer` is, where `state` is; in [0, 1], (units,)."""

    def keep(self, state: Any, keep: NDArray[np.bool_]) -> Any:
        """Drops the rows that have left, (rows,)."""

    def halt(self, state: Any, done: NDArray[np.bool_]) -> Any:
        """Words that are done, (units,), keep from now on the states they have."""


@runtime_checkable
class AnswersAlone(Protocol):
    """A back end that may have a quicker way for a single row."""

    def answer_one(self, row: TokenRow, policy: Policy) -> tuple[int, NDArray[np.float32]] | None:
        """The layer a row leaves at and its logits there, (1, classes).

        None where there is no such way for this policy, or where it came to nothing: the row is
        then run from exit to exit.
        """


def run_batch(backend: Backend, batch: Sequence[TokenRow], policy: Policy) -> Outcome:
    """Runs one batch; each row stops at the exit its policy allows, whatever the others do."""
    if len(batch) == 1 and isinstance(backend, AnswersAlone):
        answer = backend.answer_one(batch[0], policy)
        if answer is not None:
            return Outcome(np.array([answer[0]], dtype=np.int64), answer[1])
    return run_stretches(backend, batch, policy)


def run_stretches(backend: Backend, batch: Sequence[TokenRow], policy: Policy) -> Outcome:
    """Runs one batch from exit to exit, whether or not a single row had a quicker way."""
    final = backend.exit_layers[-1]
    exit_state = ExitState(policy, len(batch), backend.exit_layers, sentence_of(batch))
    outcome = _blank(backend, len(exit_state.units))
    state = backend.start(batch)
    for layer in backend.exit_layers:
        read = layer == final or policy.reads(layer)
        state, logits = backend.advance(state, layer, read=read)
        if logits is None:
            continue
        if layer == final:
            now = ~exit_state.done
        else:
            # Distances cost time; the policy asks for them only where the logits do not decide.
            fetch = functools.partial(backend.distances, state, layer)
            view = ExitView(
                layer,
                logits,
                fetch=fetch if policy.needs_distances else None,
                certainty=backend.certainty(state, layer) if policy.needs_certainty else None,
            )
            now = exit_state.step(view)
            if not now.any():
                continue
        outcome.exit_layers[exit_state.units[now]] = layer
        outcome.logits[exit_state.units[now]] = logits[now]
        stays = exit_state.drop(now)
        if not stays.any():
            break
        if not stays.all():
            state = backend.keep(state, stays)
        if exit_state.sentence is not None and exit_state.done.any():
            state = backend.halt(state, exit_state.done)
    return outcome


def run_sorted(
    backend: Backend, rows: Sequence[TokenRow], policy: Policy, batch_size: int
) -> Outcome:
    """Runs many rows in batches of similar length (less padding); results in input order.

    A row that is left over from batches goes their way, so that no other graph is opened for it.
    """
    run = run_batch if batch_size == 1 else run_stretches
    whole = _blank(backend, int(units_of(rows).sum()))
    for chosen, units in in_batches(rows, batch_size):
        part = run(backend, [rows[index] for index in chosen], policy)
        whole.exit_layers[units], whole.logits[units] = part.exit_layers, part.logits
    return whole


def in_batches(
    rows: Sequence[TokenRow], size: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows in batches of similar length: their numbers, and those of their units."""
    batches = by_length([len(row["input_ids"]) for row in rows], size)
    if sentence_of(rows) is None:
        return [(chosen, chosen) for chosen in batches]
    counts = units_of(rows)
    starts = np.cumsum(counts) - counts
    return [
        (chosen, np.concatenate([starts[row] + np.arange(counts[row]) for row in chosen]))
        for chosen in batches
    ]


def _blank(backend: Backend, units: int) -> Outcome:
    return Outcome(
        np.zeros(units, dtype=np.int64), np.zeros((units, backend.classes), dtype=np.float32)
    )


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
    last = float(CONFIDENCE_SIGNAL(ExitView(layer, part.logits))[0])
    first = last if trial.first is None else trial.first  # None: a model with one exit
    bandit.learn(trial.number, backend.exit_layers.index(layer), first, last)
    return part
