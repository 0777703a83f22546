"""The engine for words: sentences leave the batch, and words that halted keep their states.

Both rules run here. With SENTEE all words of a sentence are done at the same exit; with TOKEE they
are done one by one, and a sentence leaves when all of them are. Layers are computed for all tokens
of a sentence that is still there and halted words are put back, so that time follows the sentences
and not the words; word-layers are what the authors count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import Encoded, TokenRow
from de3bert.exits import ExitView
from de3bert.exits.rules import RuleState
from de3bert.exits.words import WordPolicy
from de3bert.progress import track
from de3bert.runtime.facts import Facts

__all__ = ["WordBackend", "WordOutcome", "record_words", "run_words", "words_of"]


class WordBackend(Protocol):
    """What runs the layers; as `Backend`, but what it hands over has a row for every word."""

    facts: Facts
    exit_layers: tuple[int, ...]
    classes: int
    has_prototypes: bool

    @property
    def prototypes_unset(self) -> tuple[str, ...]: ...

    @property
    def encoder(self) -> Callable[[Sequence[Sequence[str]]], Encoded]: ...

    def size(self) -> dict[str, Any]: ...

    def start(self, rows: Sequence[TokenRow]) -> Any: ...

    def advance(
        self, state: Any, layer: int, *, read: bool
    ) -> tuple[Any, NDArray[np.float32] | None]:
        """Runs on to the exit at `layer`; logits (words, tags) if it is read."""

    def distances(self, state: Any, layer: int) -> NDArray[np.float32]:
        """(words, tags)"""

    def halt(self, state: Any, done: NDArray[np.bool_]) -> Any:
        """Words that are done, (words,), keep from now on the states they have."""

    def keep(self, state: Any, keep: NDArray[np.bool_]) -> Any:
        """Drops the sentences that have left; (sentences,)."""


@dataclass(frozen=True)
class WordOutcome:
    """Where each word was done and what it said there; the words of all sentences in order."""

    exit_layers: NDArray[np.int64]  # (words,)
    logits: NDArray[np.float32]  # (words, tags), of the exit taken


def words_of(rows: Sequence[TokenRow]) -> NDArray[np.int64]:
    """How many words of each sentence the model sees, (rows,)."""
    return np.array([max(row["word_ids"]) for row in rows], dtype=np.int64)


def run_words(backend: WordBackend, batch: Sequence[TokenRow], policy: WordPolicy) -> WordOutcome:
    """Runs one batch of sentences; each stops where its own words let it."""
    policy.check(backend.exit_layers)
    final = backend.exit_layers[-1]
    sentence = np.repeat(np.arange(len(batch)), words_of(batch))
    words = np.arange(len(sentence))
    done = np.zeros(len(sentence), dtype=np.bool_)
    fold = RuleState.fresh(len(batch))
    outcome = WordOutcome(
        np.zeros(len(words), dtype=np.int64),
        np.zeros((len(words), backend.classes), dtype=np.float32),
    )
    state = backend.start(batch)
    for layer in backend.exit_layers:
        read = layer == final or policy.reads(layer)
        state, logits = backend.advance(state, layer, read=read)
        if logits is None:
            continue
        leave = np.ones(len(words), dtype=np.bool_)
        if layer != final:
            fetch = functools.partial(backend.distances, state, layer)
            view = ExitView(layer, logits, fetch=fetch if policy.needs_distances else None)
            leave, fold = policy.step(fold, view, sentence)
        new = leave & ~done
        outcome.exit_layers[words[new]] = layer
        outcome.logits[words[new]] = logits[new]
        done |= leave
        stays = np.bincount(sentence, weights=~done) > 0
        if not stays.any():
            break
        if not stays.all():
            kept = stays[sentence]
            words, done, fold = words[kept], done[kept], fold.keep(stays)
            sentence = (np.cumsum(stays) - 1)[sentence[kept]]
            state = backend.keep(state, stays)
        if new.any() and done.any():
            state = backend.halt(state, done)
    return outcome


def run_sorted(
    backend: WordBackend, rows: Sequence[TokenRow], policy: WordPolicy, batch_size: int
) -> WordOutcome:
    """Runs many sentences in batches of similar length; words in input order."""
    counts = words_of(rows)
    starts = np.cumsum(counts) - counts
    exit_layers = np.zeros(counts.sum(), dtype=np.int64)
    logits = np.zeros((counts.sum(), backend.classes), dtype=np.float32)
    for chosen in _batches(rows, batch_size):
        part = run_words(backend, [rows[index] for index in chosen], policy)
        places = np.concatenate([starts[index] + np.arange(counts[index]) for index in chosen])
        exit_layers[places], logits[places] = part.exit_layers, part.logits
    return WordOutcome(exit_layers, logits)


def record_words(
    backend: WordBackend,
    rows: Sequence[TokenRow],
    batch_size: int,
    *,
    distances: bool,
    progress: str | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """One full-depth pass: logits (words, exits, tags) and distances (words, exits - 1, tags)."""
    counts = words_of(rows)
    starts = np.cumsum(counts) - counts
    exits, total = len(backend.exit_layers), int(counts.sum())
    logits = np.zeros((total, exits, backend.classes), dtype=np.float32)
    far = np.zeros((total, exits - 1, backend.classes), dtype=np.float32) if distances else None
    for chosen in track(_batches(rows, batch_size), progress):
        places = np.concatenate([starts[index] + np.arange(counts[index]) for index in chosen])
        state = backend.start([rows[index] for index in chosen])
        for number, layer in enumerate(backend.exit_layers):
            state, logits[places, number] = backend.advance(state, layer, read=True)
            if far is not None and number < exits - 1:
                far[places, number] = backend.distances(state, layer)
    return logits, far


def _batches(rows: Sequence[TokenRow], size: int) -> list[NDArray[np.int64]]:
    order = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
    return [order[start : start + size] for start in range(0, len(rows), size)]
