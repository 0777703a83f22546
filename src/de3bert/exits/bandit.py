"""A threshold that is learned while answering, without labels (CeeBERT).

Every row is answered with one of a few thresholds, the arms. What an arm has gained so far says
how likely it is to be played again: a row that went deeper gained confidence and paid for layers.
The arm of a row depends on the rows before it, so rows are run one by one, in their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from de3bert.errors import De3Error
from de3bert.exits.rules import Leave, Rule, RuleState, Threshold
from de3bert.exits.signals.parse import Signal
from de3bert.exits.view import ExitView

__all__ = ["CONFIDENCE_SIGNAL", "Bandit", "BanditTrial"]

CONFIDENCE_SIGNAL = Signal("max_probability")
# Logits of another batch shape differ behind six digits. Two arms nearer than this are the same,
# and the lower one is played.
TIE = 1e-6


@dataclass
class BanditTrial(Rule):
    """One row under one arm: leaves at the first exit with max p >= arm, and notes what it saw.

    Attributes:
        number: of the arm, from 0.
        arm: the threshold.
        first: the confidence at the first exit, once that was looked at.
    """

    number: int
    arm: float
    first: float | None = None

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        if len(view.logits) != 1:
            raise ValueError(f"a trial takes one row, got {len(view.logits)}")
        confidence = float(CONFIDENCE_SIGNAL(view)[0])
        if self.first is None:
            self.first = confidence
        return np.array([confidence >= self.arm]), state


class Bandit:
    """UCB1 over thresholds: what each arm has gained, and which is played next.

    Every arm is played once; then the one with the highest Q_a + c sqrt(ln t / N_a), where t is
    the number of the row, from 1. Equal ones go to the lower arm.

    The reward of a row that leaves at exit i is C_i - C_1 - mu o_i with C = max p, and 0 at the
    first exit. It reads no label, and no exit behind the one that was taken.

    Attributes:
        arms: the thresholds, increasing.
        c: how much is explored.
        mu: what depth costs, in units of confidence.
        overheads: o_i of each exit, the final one included; growing with depth.
        gains: Q, the mean reward of each arm.
        plays: N, how often each arm was played.
    """

    def __init__(
        self, arms: Sequence[float], overheads: Sequence[float], *, c: float, mu: float
    ) -> None:
        self.arms, self.overheads = tuple(arms), tuple(overheads)
        self.c, self.mu = c, mu
        self.gains = [0.0] * len(self.arms)
        self.plays = [0] * len(self.arms)

    def bounds(self) -> list[float]:
        """Q_a + c sqrt(ln t / N_a) of each arm for the next row; infinite before its first."""
        row = sum(self.plays) + 1
        return [
            gain + self.c * math.sqrt(math.log(row) / plays) if plays else math.inf
            for gain, plays in zip(self.gains, self.plays, strict=True)
        ]

    def choose(self) -> int:
        """The number of the arm that the next row is answered with."""
        bounds = self.bounds()
        highest = max(bounds)
        return next(number for number, bound in enumerate(bounds) if bound >= highest - TIE)

    def trial(self) -> BanditTrial:
        """The rule of the next row."""
        number = self.choose()
        return BanditTrial(number, self.arms[number])

    @property
    def present(self) -> Threshold:
        """The same as an ordinary rule, for who wants to know and not to play."""
        return Threshold(CONFIDENCE_SIGNAL, ">=", self.arms[self.choose()])

    def to_json(self) -> dict[str, Any]:
        """All that is needed to continue from here, in another process too."""
        return {"gains": list(self.gains), "plays": list(self.plays)}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continues from what `to_json` returned; De3Error for what it cannot have written."""
        gains, plays = state.get("gains"), state.get("plays")
        sound = (
            isinstance(gains, list)
            and isinstance(plays, list)
            and len(gains) == len(plays) == len(self.arms)
            and all(isinstance(gain, int | float) and math.isfinite(gain) for gain in gains)
            and all(type(count) is int and 0 <= count < 10**15 for count in plays)
        )
        if not sound:
            raise De3Error("This is not the state of a bandit with these arms.")
        self.gains, self.plays = [float(gain) for gain in state["gains"]], list(state["plays"])

    def learn(self, number: int, exit_index: int, first: float, last: float) -> float:
        """Takes in what a row gained, and returns it.

        Args:
            number: of the arm it was answered with.
            exit_index: the number of the exit it left at, from 0.
            first: its confidence at the first exit.
            last: its confidence where it left.
        """
        reward = last - first - self.mu * self.overheads[exit_index] if exit_index else 0.0
        self.plays[number] += 1
        self.gains[number] += (reward - self.gains[number]) / self.plays[number]
        return reward
