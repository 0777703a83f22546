"""Units that leave together: the words of a sentence; a text is a sentence of one unit.

Rows of a trace or a batch are units here, those of one sentence next to each other. Two rules (Li
et al., 2021):

- SENTEE, `entropy < 0.1`: a sentence leaves when the largest signal of its words passes the
  threshold; `entropy < 0.1 mean` takes the mean of its words instead.
- TOKEE, `entropy < 0.1 window 5`: a word halts when the largest signal of the 5 words around it
  passes. Its tag is final, and its state goes up unchanged, so that the other words still read it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from de3bert.errors import UsageError
from de3bert.exits.rules import COMPARE, FixedLayer, Full, Leave, Rule, RuleState, Threshold
from de3bert.exits.signals.parse import Signal
from de3bert.exits.view import ExitView

__all__ = [
    "Over",
    "check_rule",
    "check_window",
    "joint_signal",
    "lower_is_safer",
    "sentence_signal",
    "starts_of",
    "step_together",
    "widest_around",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Over: TypeAlias = Literal["max", "mean"]

EXAMPLES = (
    "`entropy < 0.1` (a sentence leaves when all its words pass), `entropy < 0.1 mean` (when their "
    "mean does), `entropy < 0.1 window 5` (words halt one by one), `layer(6)`, `full`"
)


def sentence_signal(signal: ArrayLike, sentence: Integers, how: Over = "max") -> Floats:
    """The signal of a sentence from those of its words. (words, ...) -> (sentences, ...)"""
    values = np.asarray(signal, dtype=np.float64)
    starts = starts_of(sentence)
    if how == "max":
        return np.asarray(np.maximum.reduceat(values, starts, axis=0))
    counts = np.diff(np.append(starts, len(sentence)))
    sums = np.add.reduceat(values, starts, axis=0)
    return np.asarray(sums / counts.reshape(-1, *[1] * (values.ndim - 1)))


def widest_around(signal: ArrayLike, sentence: Integers, window: int) -> Floats:
    """u'_j = max(u_{j-k}, ..., u_{j+k}) with k = (window - 1) / 2, inside the sentence.

    Only odd windows have a middle: an even one would look further to one side. (words, ...) ->
    the same shape.
    """
    reach = check_window(window) // 2
    values = np.asarray(signal, dtype=np.float64)
    widest = values.copy()
    longest = int(np.bincount(sentence).max())
    for shift in range(1, min(reach, longest - 1) + 1):
        same = sentence[shift:] == sentence[:-shift]
        here, there = np.flatnonzero(same), np.flatnonzero(same) + shift
        widest[here] = np.maximum(widest[here], values[there])
        widest[there] = np.maximum(widest[there], values[here])
    return widest


def joint_signal(values: Floats, sentence: Integers, over: Over, window: int | None) -> Floats:
    """What decides about each word: that of its sentence, or of its window. (words,) -> (words,)"""
    if window is not None:
        return widest_around(values, sentence, window)
    return sentence_signal(values, sentence, over)[sentence]


def step_together(
    rule: Rule, over: Over, window: int | None, state: RuleState, view: ExitView, sentence: Integers
) -> tuple[Leave, RuleState]:
    """Which words are done at this exit, (words,), and the state after it.

    With SENTEE all words of a sentence are done at once, or none.

    Args:
        state: of the sentences, `RuleState.fresh(sentences)` before the first exit.
        view: logits (words, tags) and what else the signal reads.
        sentence: the number of each word's sentence, from 0 without gaps, (words,).
    """
    check_rule(rule)
    if not isinstance(rule, Threshold):
        return rule.step(state, view)[0], state
    values = lower_is_safer(rule.signal, rule.signal(view))
    if window is not None:
        return _passes(rule, widest_around(values, sentence, window)), state
    sure = _passes(rule, sentence_signal(values, sentence, over))
    leave, state = state.counted(sure, rule.count)
    return leave[sentence], state


def check_rule(rule: Rule) -> None:
    """UsageError for a rule that only whole texts can follow."""
    if not isinstance(rule, Threshold | FixedLayer | Full):
        raise UsageError(f"`{rule}` does not apply to taggers. Write one of: {EXAMPLES}.")


def check_window(window: int) -> int:
    if window < 1 or window % 2 == 0:
        raise UsageError(
            f"A window is an odd number of words, 1, 3, 5 ..., with the word in its middle; "
            f"got {window}."
        )
    return window


def lower_is_safer(signal: Signal, values: Floats) -> Floats:
    """Values of a signal that is safer when higher, turned; the others unchanged."""
    return -values if signal.rising else values


def starts_of(sentence: Integers) -> Integers:
    """The first word of every sentence, (sentences,)."""
    return np.flatnonzero(np.append(True, np.diff(sentence) != 0))


def _passes(rule: Threshold, low_is_safe: Floats) -> Leave:
    values = lower_is_safer(rule.signal, low_is_safe)  # turning twice is turning back
    return np.asarray(COMPARE[rule.comparison](values, rule.threshold))
