"""Exits that teach each other, with weights that are learned too (LeeBERT).

The paper's text leaves the form of the weights and of their update open; what stands here is a
reconstruction. The loss is L(Theta, Omega) = sum_m w_m CE_m + sum_{m,t} v_{m,t} KD_{m<-t}, where
Theta is the model and Omega = (w, v). Both are kept positive and of fixed sum by a softmax of free
scores: without that, the best weights of all would be 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.objective import needs
from de3bert.objective.divergence import softened_kl
from de3bert.objective.objective import LOSSES, ExitBatch, StatefulLoss
from de3bert.objective.per_row import cross_entropies
from de3bert.objective.unrolled_step import linear_heads, stepped_logits

__all__ = ["LearnedDistillation", "mutual_distillation"]

NAME = "learned_distillation"


def mutual_distillation(logits: Tensor, temperature: float) -> Tensor:
    """T^2 KL_T from every exit t (teacher, a constant) to every exit m (student).

    (rows, exits, classes) -> (rows, exits m, exits t); 0 where m = t.
    """
    students, teachers = logits[:, :, None], logits[:, None].detach()
    return temperature**2 * softened_kl(teachers, students, temperature)


@LOSSES.register(NAME)
class LearnedDistillation(StatefulLoss):
    """L(Theta, Omega); one backward pass gives Theta its gradient and Omega another, ().

    The value is L on Theta's rows with Omega constant. Omega's part is added with the value 0.

    Options:
        kd: the sum of all v (1). Each starts equal; w, of sum 1, starts at m / sum of m.
        temperature: of KD (2).
        from: `all`, an exit learns from all others (LAE); `later`, from those after it (LLE).
        halves: rows with an even number are the half D1, odd ones D2; reads `row`. `crossed`, Theta
            learns from both, and each is held out for Omega from a step on the other; `fixed`,
            Theta learns from D1 alone; `none`, Omega reads the rows that Theta learns from.
        rho: how much of D1's gradient Omega gets besides that of D2 (1).
        unroll: 1, Omega's gradient is that of the held-out loss after one step of the linear heads;
            0, that of L itself, which can only lower the weights of large parts, and ends with all
            weight on a few exits.
        inner_rate: the size of that step (0.01).
        weights_rate: the learning rate of Omega. At the encoder's it would hardly move, and weight
            decay would pull its scores together.
    """

    def __init__(self, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__(exits, options)
        self.total = needs.number(options, "kd", 1.0)
        self.temperature = needs.number(options, "temperature", 2.0, positive=True)
        self.halves = needs.word(options, "halves", ("crossed", "fixed", "none"))
        self.rho = needs.number(options, "rho", 1.0)
        self.inner_rate = needs.number(options, "inner_rate", 0.01, positive=True)
        self.unroll = needs.number(options, "unroll", 1.0)
        if self.unroll not in (0.0, 1.0):
            raise UsageError(f"Option unroll must be 0 or 1, got {self.unroll:g}.")
        if "weights_rate" in options:
            self.learning_rate = float(options["weights_rate"])
        later = needs.word(options, "from", ("all", "later")) == "later"
        everyone = range(exits)
        self.pairs = [(m, t) for m in everyone for t in everyone if t > m or (t < m and not later)]
        self.exit_scores = nn.Parameter(torch.arange(1, exits + 1).float().log())
        self.pair_scores = nn.Parameter(torch.zeros(len(self.pairs)))

    def weights(self) -> tuple[Tensor, Tensor]:
        """w, (exits,), and v, (exits m, exits t) with 0 where m does not learn from t."""
        pairs = self.total * self.pair_scores.float().softmax(0)
        square = pairs.new_zeros(self.exits, self.exits)
        place = torch.tensor(self.pairs, dtype=torch.long, device=pairs.device).reshape(-1, 2)
        return self.exit_scores.float().softmax(0), square.index_put(place.unbind(1), pairs)

    def forward(self, batch: ExitBatch) -> Tensor:
        first, second, ours = self._rows(batch)
        exit_weights, pair_weights = (weights.detach() for weights in self.weights())
        value = self._loss(batch.exit_logits, batch.labels, ours, exit_weights, pair_weights)
        if not (batch.training and torch.is_grad_enabled()):
            return value
        if self.unroll:
            carrier = self._after_a_step(batch, first, second)
            if self.rho and self.halves != "none":
                carrier = carrier + self.rho * self._after_a_step(batch, second, first)
        else:
            held_out = second if self.halves == "none" else second + self.rho * first
            logits = batch.exit_logits.detach()
            carrier = self._loss(logits, batch.labels, held_out, *self.weights())
        return value + (carrier - carrier.detach())

    def _loss(
        self,
        logits: Tensor,
        labels: Tensor,
        rows: Tensor,
        exit_weights: Tensor,
        pair_weights: Tensor,
    ) -> Tensor:
        """L with weights over rows, exits and pairs of exits, ()."""
        own = cross_entropies(logits, labels) @ exit_weights
        taught = (mutual_distillation(logits, self.temperature) * pair_weights).sum((1, 2))
        return (rows * (own + taught)).sum()

    def _after_a_step(self, batch: ExitBatch, learned: Tensor, held_out: Tensor) -> Tensor:
        """The held-out cross-entropy once the heads have taken a step on L(learned rows; Omega).

        Exits are weighted by their number: what is wanted of the exits must not depend on Omega.
        The step reads the states themselves, without dropout.
        """
        weights = self.weights()
        logits = stepped_logits(
            needs.states(batch, NAME),
            *linear_heads(batch.heads),
            lambda logits: self._loss(logits, batch.labels, learned, *weights),
            self.inner_rate,
        )
        wanted = torch.arange(1.0, self.exits + 1, device=logits.device)
        each = cross_entropies(logits, batch.labels) @ (wanted / wanted.sum())
        return (held_out * each).sum()

    def _rows(self, batch: ExitBatch) -> tuple[Tensor, Tensor, Tensor]:
        """How much every row counts in D1, in D2, and for Theta, (rows,) each."""
        every = torch.full(batch.labels.shape, 1 / len(batch.labels), device=batch.labels.device)
        if self.halves == "none" or not batch.training:
            return every, every, every
        row = needs.extra(batch, "row", NAME, "the number of the row in the data, (rows,) int64")
        even = (row % 2 == 0).float()
        first, second = (half / half.sum().clamp_min(1) for half in (even, 1 - even))
        return first, second, first if self.halves == "fixed" else every
