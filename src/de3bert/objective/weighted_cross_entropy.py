"""Sample weighting (COSEE): a row counts most at the exits where it is likely to leave."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from de3bert.exits.signals.formulas import energy
from de3bert.methods.method import OptionValue
from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, Clock, ExitBatch, StatefulLoss
from de3bert.objective.per_row import cross_entropies, first_exit

__all__ = ["WeightedCrossEntropy", "closeness", "simulated_exits"]

SALT = 1  # keeps its random numbers apart from those of other losses


def simulated_exits(signals: Tensor, thresholds: Tensor) -> Tensor:
    """The exit every row would take: the first with signal < tau, else the last; counted from 1.

    Args:
        signals: of the internal exits, low is easy, (rows, exits - 1).
        thresholds: tau, (thresholds,).

    Returns:
        (thresholds, rows) int64.
    """
    return first_exit(signals < thresholds[:, None, None])


def closeness(taken: Tensor, exits: int, sharpness: float) -> Tensor:
    """w(m) = exp(-b |m - m*|) / sum_m' exp(-b |m' - m*|). (...) -> (..., exits)

    Args:
        taken: m*, counted from 1. Exits count, not layers, so that neighbours are 1 apart.
        sharpness: b; 0 weighs all exits alike.
    """
    numbers = torch.arange(1, exits + 1, device=taken.device)
    return (-sharpness * (numbers - taken[..., None]).abs()).softmax(-1)


@LOSSES.register("weighted_cross_entropy")
class WeightedCrossEntropy(StatefulLoss):
    """L = mean over thresholds and rows of sum_m w(m) CE(m), (). The weights are constants.

    In every step thresholds are drawn uniformly from the range that the normalised energy had over
    all exits before the last in the epoch before ([0, 1] in the first), as in the authors' code:
    nobody leaves by the signal of the last one. With each the exits of all rows are simulated. The
    weights sharpen as training goes on, b_t = b0 * progress: at first all exits
    count alike.

    Options: `b0` (1), `thresholds` (5).
    """

    bounds: Tensor  # (2,), lowest and highest signal of the epoch before
    seen: Tensor  # (2,), of this epoch so far
    epoch: Tensor  # (), the epoch that `seen` belongs to

    def __init__(self, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__(exits, options)
        self.sharpness = needs.number(options, "b0", 1.0)
        self.thresholds = needs.whole_number(options, "thresholds", 5, least=1)
        self.register_buffer("bounds", torch.tensor([0.0, 1.0]))
        self.register_buffer("seen", torch.tensor([math.inf, -math.inf]))
        self.register_buffer("epoch", torch.tensor(0))

    def forward(self, batch: ExitBatch) -> Tensor:
        signals = energy(batch.exit_logits[:, :-1].detach())  # (rows, exits - 1)
        if batch.training:
            self._turn_page(batch.clock.epoch)
            self._watch(signals)
        taken = simulated_exits(signals, self._drawn(batch.clock))
        sharpness = self.sharpness * batch.clock.progress
        weights = closeness(taken, self.exits, sharpness).mean(0)  # (rows, exits)
        return (weights * cross_entropies(batch.exit_logits, batch.labels)).sum(1).mean()

    def _drawn(self, clock: Clock) -> Tensor:
        """The thresholds of this step, (thresholds,)."""
        shares = torch.rand(self.thresholds, generator=clock.generator(SALT))
        low, high = self.bounds.float()
        return low + (high - low) * shares.to(low.device)

    def _turn_page(self, epoch: int) -> None:
        """At the start of another epoch: what was seen becomes the range to draw from."""
        if epoch == int(self.epoch):
            return
        # Back to an earlier epoch: a new training, whose first epoch knows no range.
        known = epoch > int(self.epoch) and bool(self.seen.isfinite().all())
        self.bounds.copy_(self.seen if known else self.bounds.new_tensor([0.0, 1.0]))
        self.seen.copy_(self.seen.new_tensor([math.inf, -math.inf]))
        self.epoch.fill_(epoch)

    def _watch(self, signals: Tensor) -> None:
        low, high = torch.aminmax(signals)
        self.seen[0] = torch.minimum(self.seen[0], low)
        self.seen[1] = torch.maximum(self.seen[1], high)
