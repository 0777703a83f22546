"""A policy says when to leave. It is one line of text, and that line is all there is to store."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits.bandit_rule import MOST_ARMS, BanditRule, read_settings
from de3bert.exits.keeping import FORM as KEEP_FORM
from de3bert.exits.keeping import MOST_KNOTS, NO_BANDIT, KeepRule, read_keep
from de3bert.exits.line import BRIEF, COUNT, one_line, parse_count, parse_number, shown
from de3bert.exits.rules import (
    FixedLayer,
    Full,
    Leave,
    Oracle,
    Patience,
    Rule,
    RuleState,
    Threshold,
)
from de3bert.exits.signals.parse import SIGNALS, Signal
from de3bert.exits.signals.single_row import FEW_CLASSES
from de3bert.exits.units import Over, check_window, step_together
from de3bert.exits.view import ExitView
from de3bert.registry import unknown

__all__ = ["Policy"]

EXAMPLES = (
    "`entropy < 0.2`, `edr(lambda=1.0) < 0.4`, `max_probability > 0.9`, `entropy < 0.2 x 2`, "
    "`certainty > 0.9`, `patience(6)`, `layer(6)`, `bandit`, `keep(...) entropy`, `full`, `oracle`"
)
THRESHOLD = re.compile(
    r"(?P<signal>[^<>]*?)\s*(?P<op><=|>=|<|>)\s*(?P<value>[^\s<>=]+)(?:\s+x\s*(?P<count>\S+))?"
)
TOGETHER = re.compile(r"(?P<policy>.*?)(?:\s+(?P<over>max|mean)|\s+window\s+(?P<window>\S+))?")
WORD = re.compile(r"(?P<name>[^\s()]+)\s*(?:\((?P<value>[^()]*)\))?")
KEEP = re.compile(r"keep\s*\((?P<settings>[^()]*)\)\s*(?P<signal>.*?\S)(?:\s+x\s*(?P<count>\S+))?")
BARE = ("full", "oracle")
# Characters of a line that lists every arm of a bandit, or every knot of a curve.
LONG_LINES = {"bandit": BRIEF + 25 * MOST_ARMS, "keep": BRIEF + 50 * MOST_KNOTS}
# Curves end a small step outside of a signal's values: there all rows leave, or none does.
BEYOND = 0.1
COUNTED = {"patience": "patience(6)", "layer": "layer(6)"}


@dataclass(frozen=True)
class Policy:
    """When to leave: a rule, parsed from and printed as one line.

    Example:
        >>> policy = Policy.parse("edr(lambda=1.0) < 0.40")
        >>> str(policy)
        'edr(lambda=1.0) < 0.4'

    Of a tagger it speaks of sentences: one leaves when the largest signal of its words passes, or
    their mean (`over`), or words halt one by one when all words of a `window` around them pass. To
    a text, a sentence of one, all three are the same.

    The live engine applies it exit by exit:

        >>> state = policy.start(rows, exits=(1, 2, 3), final=4)
        >>> for view in views:                        # one ExitView per internal exit
        ...     leave, state = policy.step(state, view)
        ...     state = policy.keep(state, ~leave)    # and drop those rows from the batch
    """

    rule: Rule
    over: Over = "max"
    window: int | None = None

    def __post_init__(self) -> None:
        if self.window is None:
            return
        check_window(self.window)
        plain = isinstance(self.rule, Threshold) and self.rule.count == 1
        if not plain or self.over != "max":
            raise UsageError(
                "A window goes with a plain threshold, as in `entropy < 0.1 window 5`; got "
                f"`{self.rule}`."
            )

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Reads one line; UsageError says what is wrong with it and shows the right form."""
        line = one_line(text, "A policy", f"Examples: {EXAMPLES}.", longest_line(text))
        if not line:
            raise UsageError(f"A policy is one line of text, got {text!r}. Examples: {EXAMPLES}.")
        parts = TOGETHER.fullmatch(line)
        assert parts is not None  # it matches every line
        if parts["window"] is not None and not COUNT.fullmatch(parts["window"]):
            raise UsageError(
                f'A window is an odd number of words, got "{shown(parts["window"])}". Write for '
                "example `entropy < 0.1 window 5`."
            )
        window = None if parts["window"] is None else int(parts["window"])
        return cls(cls._rule(parts["policy"]), "mean" if parts["over"] == "mean" else "max", window)

    @staticmethod
    def _rule(line: str) -> Rule:
        if match := KEEP.fullmatch(line):
            count = match["count"]
            if match["signal"].partition("(")[0].strip() == "bandit":
                raise UsageError(NO_BANDIT)
            times = 1 if count is None else parse_count(count, "`keep(...) SIGNAL x N`")
            return read_keep(match["settings"], Signal.parse(match["signal"]), times)
        if match := THRESHOLD.fullmatch(line):
            return _threshold(match["signal"], match["op"], match["value"], match["count"])
        if match := WORD.fullmatch(line):
            return _word(line, match["name"], match["value"])
        raise UsageError(f'Cannot read the policy "{shown(line)}". Examples: {EXAMPLES}.')

    def __str__(self) -> str:
        if self.window is not None:
            return f"{self.rule} window {self.window}"
        return f"{self.rule} mean" if self.over == "mean" else str(self.rule)

    def to_json(self) -> str:
        return str(self)

    @classmethod
    def from_json(cls, document: object) -> Policy:
        if not isinstance(document, str):
            raise De3Error(f"A stored policy is one line of text, got {reprlib.repr(document)}.")
        return cls.parse(document)

    @property
    def signal(self) -> Signal | None:
        """The signal the rule reads, or None."""
        return self.rule.signal if isinstance(self.rule, Threshold | KeepRule) else None

    @property
    def needs_distances(self) -> bool:
        return self.signal is not None and self.signal.needs_distances

    @property
    def needs_certainty(self) -> bool:
        """Whether it asks a router how sure it is."""
        return self.signal is not None and self.signal.needs_certainty

    @property
    def sequential(self) -> bool:
        """Whether what it does with a row depends on the rows before it: bandits and controllers.

        A classifier runs its rows in their order, and so does replay.
        """
        return self.rule.sequential

    @property
    def needs_labels(self) -> bool:
        return self.rule.needs_labels

    def reads(self, layer: int) -> bool:
        """Whether the rule looks at the exit at `layer` at all; if not, skip computing it."""
        return self.rule.reads(layer)

    def start(self, rows: int, exits: Sequence[int], final: int) -> RuleState:
        """The state before the first exit.

        Args:
            rows: how many rows enter.
            exits: layers of the internal exits, without the final one.
            final: the last layer.
        """
        self.rule.check(exits, final)
        return RuleState.fresh(rows)

    def step(
        self, state: RuleState, view: ExitView, sentence: NDArray[np.int64] | None = None
    ) -> tuple[Leave, RuleState]:
        """Which rows leave at this internal exit, (rows,), and the state of all rows after it.

        Args:
            sentence: for a tagger, the number of each word's sentence, from 0 without gaps;
                the state is that of the sentences then, and words are said to leave.
        """
        if sentence is None and len(view.logits) != len(state.run):
            raise ValueError(
                f"the view has {len(view.logits)} rows, the state {len(state.run)}: "
                "call keep() for the rows that left"
            )
        if _has_nan(view.logits):
            raise De3Error(
                f"A logit at layer {view.layer} is not a number (NaN), so no exit can be decided. "
                "Check the model weights and the input, or run in float32."
            )
        if sentence is not None:
            return step_together(self.rule, self.over, self.window, state, view, sentence)
        return self.rule.step(state, view)

    def keep(self, state: RuleState, keep: Leave) -> RuleState:
        """The state of the rows where `keep` is True, (rows,), in the same order."""
        return state.keep(keep)


def longest_line(text: object) -> int:
    """Characters that a policy or family may have, by the word it begins with."""
    begin = str(text).lstrip()
    return next((most for word, most in LONG_LINES.items() if begin.startswith(word)), BRIEF)


def _has_nan(logits: NDArray[np.floating[Any]]) -> bool:
    if len(logits) == 1 and logits.shape[1] <= FEW_CLASSES:
        return any(map(math.isnan, logits[0].tolist()))
    return bool(np.isnan(logits).any())


def _threshold(name: str, op: str, value: str, count: str | None) -> Threshold:
    signal = Signal.parse(name)
    right = ">" if signal.rising else "<"
    if not op.startswith(right):
        safer = "higher" if signal.rising else "lower"
        raise UsageError(
            f"`{signal}` is safer when {safer}, so it leaves at `{right}`, not at `{op}`. "
            f"Write `{signal} {right} {shown(value)}`."
        )
    threshold = parse_number(value)
    example = f"Write for example `{signal} {right} {0.9 if signal.rising else 0.2}`."
    if not math.isfinite(threshold):
        raise UsageError(
            f'The threshold of `{signal}` must be a finite number, got "{shown(value)}". {example}'
        )
    low, high = signal.kind.range or (-math.inf, math.inf)
    if not low - BEYOND <= threshold <= high + BEYOND:
        raise UsageError(
            f"`{signal}` lies between {low:g} and {high:g}, so a threshold of {threshold:g} is "
            f"meaningless. {example}"
        )
    times = 1 if count is None else parse_count(count, f"`{signal} {op} {threshold!r} x N`")
    return Threshold(signal, op, threshold, times)  # type: ignore[arg-type]  # the pattern saw to it


def _word(line: str, name: str, value: str | None) -> Rule:
    if name in BARE and value is None:
        return Full() if name == "full" else Oracle()
    if name in BARE:
        raise UsageError(f'`{name}` takes no number, got "{shown(line)}". Write `{name}`.')
    if name in COUNTED:
        if value is None:
            raise UsageError(f"`{name}` needs a number. Write for example `{COUNTED[name]}`.")
        number = parse_count(value, f"`{name}(N)`")
        return Patience(number) if name == "patience" else FixedLayer(number)
    if name == "bandit":
        return BanditRule(**read_settings(value))
    signal = Signal.parse(line) if name in SIGNALS else None
    if signal is not None:
        form = "> 0.9" if signal.rising else "< 0.2"
        raise UsageError(f"`{signal}` needs a threshold. Write for example `{signal} {form}`.")
    if name == "keep":
        raise UsageError(f'Cannot read the controller "{shown(line)}". {KEEP_FORM}')
    known = [*BARE, *COUNTED, "bandit", "keep", *SIGNALS]
    raise UsageError(f"{unknown('policy', shown(name), known)}\nExamples: {EXAMPLES}.")
