"""Rules: small state machines over the exits that say, at each exit, which rows may leave.

A rule keeps one integer or two per row. `step` looks at one exit and updates them; the caller then
drops the rows that left. The replay of a trace and the live engine run this same code.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError
from de3bert.exits.signals.parse import Signal
from de3bert.exits.view import ExitView

__all__ = [
    "FixedLayer",
    "Full",
    "Leave",
    "Oracle",
    "Patience",
    "Rule",
    "RuleState",
    "Threshold",
]

Leave: TypeAlias = NDArray[np.bool_]
Comparison: TypeAlias = Literal["<", "<=", ">", ">="]

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

# Two ways to the same value differ in its last bits. Nearer to the threshold than this, the array
# function decides, so that a row leaves at the same exit alone, in a batch and in a replay.
NEAR, NEAR_ZERO = 1e-9, 1e-12


@dataclass(frozen=True, eq=False)
class RuleState:
    """What a rule remembers of the rows still alive.

    Attributes:
        run: how many exits in a row have met the condition, (rows,).
        answer: the class predicted at the exit before, -1 before the first, (rows,).
    """

    run: NDArray[np.int64]
    answer: NDArray[np.int64]

    @classmethod
    def fresh(cls, rows: int) -> RuleState:
        return cls(np.zeros(rows, dtype=np.int64), np.full(rows, -1, dtype=np.int64))

    def keep(self, keep: Leave) -> RuleState:
        return RuleState(self.run[keep], self.answer[keep])

    def counted(
        self, met: Leave, count: int, answer: NDArray[np.int64] | None = None
    ) -> tuple[Leave, RuleState]:
        """Which rows have now met the condition `count` exits in a row, and the state after it."""
        run = np.where(met, self.run + 1, 0)
        return run >= count, RuleState(run, self.answer if answer is None else answer)

    def counted_row(
        self, met: bool, count: int, answer: int | None = None
    ) -> tuple[Leave, RuleState]:
        """`counted` for a single row, without array arithmetic on one number."""
        run = int(self.run[0]) + 1 if met else 0
        after = self.answer if answer is None else np.array([answer])
        return np.array([run >= count]), RuleState(np.array([run]), after)


class Rule:
    """The base of all rules: never leaves, needs nothing."""

    needs_labels: ClassVar[bool] = False
    sequential: ClassVar[bool] = False

    def check(self, exits: Sequence[int], final: int) -> None:
        """Raises UsageError when the rule cannot run on a model with these exits."""

    def reads(self, layer: int) -> bool:
        """Whether this rule looks at the internal exit at `layer`."""
        return True

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        return np.zeros(len(view.logits), dtype=np.bool_), state


@dataclass(frozen=True)
class Threshold(Rule):
    """Leaves when the signal passed the threshold at `count` exits in a row.

    One exit is the rule of DeeBERT and DE3-BERT; more is PCEE-BERT's patience.
    """

    signal: Signal
    comparison: Comparison
    threshold: float
    count: int = 1

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        sure = self._is_sure(view)
        if not sure and self.signal.needs_distances:
            view = view.fetched()
        if len(view.logits) == 1:
            return state.counted_row(sure or self._row_passes(view), self.count)
        if sure:
            return state.counted(np.ones(len(view.logits), dtype=np.bool_), self.count)
        passed = COMPARE[self.comparison](self.signal(view), self.threshold)
        return state.counted(passed, self.count)

    def _is_sure(self, view: ExitView) -> bool:
        """Whether all rows pass whatever their distances are, so that they need not be fetched.

        Row by row, because the first row in doubt ends it.
        """
        if view.fetch is None or not self.signal.needs_distances:
            return False
        bounds = self.signal.worst_of_rows(view)
        return all(self._compare(bound) and not self._is_near(bound) for bound in bounds)

    def _row_passes(self, view: ExitView) -> bool:
        value = self.signal.of_row(view)
        if self._is_near(value):
            value = float(self.signal(view)[0])
        return self._compare(value)

    def _compare(self, value: float) -> bool:
        return bool(COMPARE[self.comparison](value, self.threshold))

    def _is_near(self, value: float) -> bool:
        return math.isclose(value, self.threshold, rel_tol=NEAR, abs_tol=NEAR_ZERO)

    def __str__(self) -> str:
        suffix = f" x {self.count}" if self.count > 1 else ""
        return f"{self.signal} {self.comparison} {self.threshold!r}{suffix}"


@dataclass(frozen=True)
class Patience(Rule):
    """Leaves when the predicted class stayed the same `count` times running (PABEE).

    The first exit has nothing to agree with, so the earliest exit is number count + 1. A change
    resets the run to 0, not to 1.
    """

    count: int

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        if len(view.logits) == 1:
            row = view.logits[0].tolist()
            best = row.index(max(row))
            return state.counted_row(best == int(state.answer[0]), self.count, best)
        answer = np.argmax(view.logits, axis=-1)
        return state.counted(answer == state.answer, self.count, answer)

    def __str__(self) -> str:
        return f"patience({self.count})"


@dataclass(frozen=True)
class FixedLayer(Rule):
    """Every row leaves at the same layer, counted from 1."""

    layer: int

    def check(self, exits: Sequence[int], final: int) -> None:
        if self.layer not in (*exits, final):
            layers = ", ".join(str(layer) for layer in (*exits, final))
            raise UsageError(f"There is no exit at layer {self.layer}. Exits are at: {layers}.")

    def reads(self, layer: int) -> bool:
        return layer == self.layer

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        return np.full(len(view.logits), view.layer == self.layer), state

    def __str__(self) -> str:
        return f"layer({self.layer})"


@dataclass(frozen=True)
class Full(Rule):
    """Never leaves early."""

    def reads(self, layer: int) -> bool:
        return False

    def __str__(self) -> str:
        return "full"


@dataclass(frozen=True)
class Oracle(Rule):
    """Leaves at the shallowest exit that is right. Needs the labels: it exists only in replay.

    An upper bound on accuracy, not on speed: rows that are wrong everywhere go through all layers.
    """

    needs_labels: ClassVar[bool] = True

    def check(self, exits: Sequence[int], final: int) -> None:
        raise UsageError(
            "`oracle` reads the true labels, so it can be replayed on a labelled trace but not run "
            "on new text. Use a policy such as `entropy < 0.2`."
        )

    def __str__(self) -> str:
        return "oracle"
