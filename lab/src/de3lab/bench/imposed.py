"""Exit layers by order: for timing models whose weights are random, where no signal means anything.

The real test is made at every exit, distances and all, so that its cost is there; what it says is
then overruled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.exits import ExitView, Policy
from de3bert.exits.rules import Leave, RuleState

__all__ = ["Imposed", "spread"]


@dataclass(frozen=True, eq=False)
class ImposedState(RuleState):
    """The state of the real rule, and where each row that is still there has to leave, (rows,)."""

    leave_at: NDArray[np.int64]

    @classmethod
    def of(cls, state: RuleState, leave_at: NDArray[np.int64]) -> ImposedState:
        return cls(state.run, state.answer, leave_at)

    def keep(self, keep: Leave) -> ImposedState:
        return ImposedState.of(super().keep(keep), self.leave_at[keep])


@dataclass(frozen=True)
class Imposed(Policy):
    """A policy that tests like another one and lets rows leave where it is told.

    Example:
        >>> policy = Imposed.on(Policy.parse("edr(lambda=1.0) < 0.0"), [3, 12])
        >>> run_batch(backend, two_rows, policy).exit_layers
        array([ 3, 12])
    """

    leave_at: tuple[int, ...] = ()

    @classmethod
    def on(cls, policy: Policy, leave_at: Sequence[int]) -> Imposed:
        """Args:
        policy: makes the test at every exit.
        leave_at: the layer of each row of the batch, in its order.
        """
        return cls(policy.rule, leave_at=tuple(int(layer) for layer in leave_at))

    def start(self, rows: int, exits: Sequence[int], final: int) -> ImposedState:
        strange = set(self.leave_at) - {*exits, final}
        if rows != len(self.leave_at) or strange:
            raise ValueError(
                f"{len(self.leave_at)} layers were imposed on {rows} rows, without an exit: "
                f"{sorted(strange)}"
            )
        return ImposedState.of(
            super().start(rows, exits, final), np.array(self.leave_at, dtype=np.int64)
        )

    def step(
        self, state: RuleState, view: ExitView, sentence: NDArray[np.int64] | None = None
    ) -> tuple[Leave, RuleState]:
        assert isinstance(state, ImposedState)  # made by start
        _, after = super().step(state, view)
        return state.leave_at <= view.layer, ImposedState.of(after, state.leave_at)


def spread(histogram: Mapping[int, float], rows: int, seed: int = 0) -> list[int]:
    """Values in the shares of a histogram, in random order: as near to it as `rows` allows."""
    values = np.array(sorted(histogram))
    shares = np.cumsum([histogram[value] for value in values])
    places = (np.arange(rows) + 0.5) / rows * shares[-1]
    chosen = values[np.searchsorted(shares, places)]
    return [int(value) for value in np.random.default_rng(seed).permutation(chosen)]
