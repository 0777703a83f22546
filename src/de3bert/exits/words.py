"""Early exit for words: a sentence leaves when all its words are sure, or words halt one by one.

Rows are words here, those of one sentence next to each other. Two rules (Li et al., 2021):

- SENTEE, `entropy < 0.1`: a sentence leaves when the largest signal of its words passes the
  threshold; `entropy < 0.1 mean` takes the mean of its words instead.
- TOKEE, `entropy < 0.1 window 5`: a word halts when the largest signal of the 5 words around it
  passes. Its tag is final, and its state goes up unchanged, so that the other words still read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits.line import COUNT, one_line, shown
from de3bert.exits.policy import Policy
from de3bert.exits.rules import COMPARE, FixedLayer, Full, Leave, RuleState, Threshold
from de3bert.exits.signal import Signal
from de3bert.exits.view import ExitView

__all__ = ["Over", "WordPolicy", "lower_is_safer", "sentence_signal", "windowed"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Over: TypeAlias = Literal["max", "mean"]

LINE = re.compile(r"(?P<policy>.*?)(?:\s+(?P<over>max|mean)|\s+window\s+(?P<window>\S+))?\s*")
EXAMPLES = (
    "`entropy < 0.1` (a sentence leaves when all its words pass), `entropy < 0.1 mean` (when their "
    "mean does), `entropy < 0.1 window 5` (words halt one by one), `layer(6)`, `full`"
)


def sentence_signal(signal: ArrayLike, sentence: Integers, how: Over = "max") -> Floats:
    """The signal of a sentence from those of its words. (words, ...) -> (sentences, ...)"""
    values = np.asarray(signal, dtype=np.float64)
    starts = _starts(sentence)
    if how == "max":
        return np.asarray(np.maximum.reduceat(values, starts, axis=0))
    counts = np.diff(np.append(starts, len(sentence)))
    sums = np.add.reduceat(values, starts, axis=0)
    return np.asarray(sums / counts.reshape(-1, *[1] * (values.ndim - 1)))


def windowed(signal: ArrayLike, sentence: Integers, window: int) -> Floats:
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


def check_window(window: int) -> int:
    if window < 1 or window % 2 == 0:
        raise UsageError(
            f"A window is an odd number of words, 1, 3, 5 ..., with the word in its middle; "
            f"got {window}."
        )
    return window


@dataclass(frozen=True)
class WordPolicy:
    """When sentences leave or words halt: a policy on words, and how words act together.

    Attributes:
        policy: a threshold on a signal of single words, `layer(N)` or `full`.
        over: SENTEE: the signal of a sentence is the `max` or the `mean` of its words.
        window: TOKEE: words around a word that must pass for it to halt; None: SENTEE.

    Example:
        >>> WordPolicy.parse("entropy < 0.15 window 5").window
        5
    """

    policy: Policy
    over: Over = "max"
    window: int | None = None

    def __post_init__(self) -> None:
        rule = self.policy.rule
        if not isinstance(rule, Threshold | FixedLayer | Full):
            raise UsageError(f"`{rule}` is not for words. Write one of: {EXAMPLES}.")
        if self.window is None:
            return
        check_window(self.window)
        if not isinstance(rule, Threshold) or rule.count > 1 or self.over != "max":
            raise UsageError(f"A window goes with a plain threshold, as in {EXAMPLES}.")

    @classmethod
    def parse(cls, text: str) -> WordPolicy:
        """Reads one line; UsageError says what is wrong with it and shows the right form."""
        line = one_line(text, "A policy", f"Examples: {EXAMPLES}.")
        match = LINE.fullmatch(line)
        if match is None or not match["policy"].strip():
            raise UsageError(
                f'A policy is one line of text, got "{shown(line)}". Examples: {EXAMPLES}.'
            )
        policy = Policy.parse(match["policy"])
        if match["window"] is not None:
            if not COUNT.fullmatch(match["window"]):
                raise UsageError(
                    f'A window is an odd number of words, got "{shown(match["window"])}". '
                    f"Examples: {EXAMPLES}."
                )
            return cls(policy, window=int(match["window"]))
        return cls(policy, over="mean" if match["over"] == "mean" else "max")

    def __str__(self) -> str:
        if self.window is not None:
            return f"{self.policy} window {self.window}"
        return f"{self.policy} mean" if self.over == "mean" else str(self.policy)

    @property
    def halts_words(self) -> bool:
        """TOKEE: words halt one by one, and a halted one changes what the others read."""
        return self.window is not None

    @property
    def needs_distances(self) -> bool:
        return self.policy.needs_distances

    @property
    def needs_certainty(self) -> bool:
        return self.policy.needs_certainty

    def reads(self, layer: int) -> bool:
        """Whether the rule looks at the exit at `layer` at all."""
        return self.policy.reads(layer)

    def step(self, state: RuleState, view: ExitView, sentence: Integers) -> tuple[Leave, RuleState]:
        """Which words are done at this exit, (words,), and the state after it.

        Args:
            state: of the sentences, `RuleState.fresh(sentences)` before the first exit.
            view: logits (words, tags) and what else the signal reads.
            sentence: the number of each word's sentence, from 0 without gaps, (words,).

        With SENTEE all words of a sentence are done at once, or none.
        """
        if np.isnan(view.logits).any():
            raise De3Error(f"A logit at layer {view.layer} is not a number (NaN): check the model.")
        rule = self.policy.rule
        if not isinstance(rule, Threshold):
            met = isinstance(rule, FixedLayer) and rule.layer == view.layer
            return np.full(len(sentence), met), state
        values = lower_is_safer(rule.signal, rule.signal(view))
        if self.window is not None:
            return self._passes(rule, windowed(values, sentence, self.window)), state
        sure = self._passes(rule, sentence_signal(values, sentence, self.over))
        leave, state = state.counted(sure, rule.count)
        return leave[sentence], state

    def check(self, exits: tuple[int, ...]) -> None:
        """Raises UsageError when it cannot run on a model with exits at these layers."""
        self.policy.rule.check(exits[:-1], exits[-1])

    @staticmethod
    def _passes(rule: Threshold, low_is_safe: Floats) -> Leave:
        values = lower_is_safer(rule.signal, low_is_safe)  # turning twice is turning back
        return np.asarray(COMPARE[rule.comparison](values, rule.threshold))


def lower_is_safer(signal: Signal, values: Floats) -> Floats:
    """Values of a signal that is safer when higher, turned; the others as they are."""
    return -values if signal.rising else values


def _starts(sentence: Integers) -> Integers:
    """The first word of every sentence, (sentences,)."""
    return np.flatnonzero(np.append(True, np.diff(sentence) != 0))
