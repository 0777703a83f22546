"""Traces of words, and what a policy would have answered on one without running the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error
from de3bert.exits.rules import RuleState
from de3bert.exits.signal import Signal
from de3bert.exits.signals import probabilities
from de3bert.exits.trace import Trace
from de3bert.exits.words import Over, WordPolicy, lower_is_safer, sentence_signal

__all__ = ["WordReplay", "WordTrace", "replay_words", "sentence_matrix"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordTrace:
    """What every exit said of every word, from one full-depth pass.

    Attributes:
        trace: its rows are words; `tokens` are the pieces of each word.
        sentence: the number of each word's sentence, from 0 without gaps, (rows,).
    """

    trace: Trace
    sentence: Integers

    def __post_init__(self) -> None:
        numbers = np.asarray(self.sentence)
        whole = numbers.ndim == 1 and numbers.dtype.kind in "iu"
        steps = np.diff(numbers.astype(np.int64)) if whole else np.array([-1])
        sound = numbers.shape == (self.trace.rows,) and whole and numbers[0] == 0
        if not sound or not np.isin(steps, (0, 1)).all():
            raise De3Error(
                "This is not a sound trace of words: `sentence` must give each of its "
                f"{self.trace.rows} words the number of its sentence, 0, 0, 1, 1, 1, 2 ..."
            )
        object.__setattr__(self, "sentence", numbers.astype(np.int64))

    @property
    def sentences(self) -> int:
        return int(self.sentence[-1]) + 1


@dataclass(frozen=True, eq=False)
class WordReplay:
    """The answers of a policy on a trace of words; every array is (words,).

    Attributes:
        labels: the tag's number.
        exit_layers: the layer at which the word was done, counted from 1.
        exit_index: the number of that exit, counted from 0.
        scores: the probability of the tag there.
        exact: whether a run gives the same. A halted word (TOKEE) hands on its old state, so that
            words above read something else than in the full-depth pass that made the trace: from
            the first halted word of a sentence on, a replay only approximates the run.
    """

    labels: Integers
    exit_layers: Integers
    exit_index: Integers
    scores: Floats
    exact: bool


def replay_words(words: WordTrace, policy: WordPolicy) -> WordReplay:
    """What the policy gives on a trace; of SENTEE exactly what a run gives, of TOKEE nearly."""
    policy.check(words.trace.exit_layers)
    trace, last = words.trace, words.trace.exits - 1
    index = np.full(trace.rows, last, dtype=np.int64)
    done = np.zeros(trace.rows, dtype=np.bool_)
    state = RuleState.fresh(words.sentences)
    for number in range(last):
        leave, state = policy.step(state, trace.view(number), words.sentence)
        index[leave & ~done] = number
        done |= leave
    rows = np.arange(trace.rows)
    scores: NDArray[Any] = probabilities(trace.logits[rows, index].astype(np.float64)).max(axis=-1)
    return WordReplay(
        labels=trace.predictions[rows, index],
        exit_layers=np.asarray(trace.exit_layers, dtype=np.int64)[index],
        exit_index=index,
        scores=scores,
        exact=not policy.halts_words,
    )


def sentence_matrix(words: WordTrace, signal: Signal, over: Over = "max") -> Floats:
    """Lower-is-safer signals of all sentences at all internal exits, (sentences, exits - 1)."""
    columns = [
        sentence_signal(
            lower_is_safer(signal, signal(words.trace.view(number))), words.sentence, over
        )
        for number in range(words.trace.exits - 1)
    ]
    return np.stack(columns, axis=1) if columns else np.empty((words.sentences, 0))
