"""The state of a policy over the exits: which units are done, and which rows are still running.

The live engine and the replay of a trace use this same class. A row is a text, or a sentence of
several words; a unit is what has its own answer, the text itself or each word of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.policy import Policy
from de3bert.exits.rules import Leave
from de3bert.exits.view import ExitView

__all__ = ["ExitState"]


class ExitState:
    """The rows of a batch or a trace between two exits.

    Attributes:
        units: numbers of the units whose rows are still running, (units,).
        sentence: for each of these, the number of its row among those still running; None where
            every unit is a row.
        done: for each, whether it has its answer already, (units,); only words can be done while
            their row is still running, when they halt one by one.
    """

    def __init__(
        self,
        policy: Policy,
        rows: int,
        exit_layers: Sequence[int],
        sentence: NDArray[np.int64] | None = None,
    ) -> None:
        *internal, final = exit_layers
        self.policy = policy
        self.state = policy.start(rows, internal, final)
        self.sentence = sentence
        self.units = np.arange(rows if sentence is None else len(sentence))
        self.done = np.zeros(len(self.units), dtype=np.bool_)

    def step(self, view: ExitView) -> Leave:
        """Which units get their answer at this internal exit, (units,)."""
        leave, self.state = self.policy.step(self.state, view, self.sentence)
        return leave if self.sentence is None else leave & ~self.done

    def drop(self, now: Leave) -> Leave:
        """Removes the rows whose units are all done; returns which rows stay, (rows,)."""
        if self.sentence is None:
            stays = kept = ~now
            self.done = self.done[kept]
        else:
            done = self.done | now
            stays = np.bincount(self.sentence, weights=~done) > 0
            kept = stays[self.sentence]
            self.sentence = (np.cumsum(stays) - 1)[self.sentence[kept]]
            self.done = done[kept]
        self.units = self.units[kept]
        self.state = self.policy.keep(self.state, stays)
        return stays
