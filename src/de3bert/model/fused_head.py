"""Heads that read the vectors of all exits: the past ones as they were, the future ones guessed.

GPFEE, Liao et al., 2021: A Global Past-Future Early Exit Method.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model.head import HEADS, Heads, HeadSettings, Reading
from de3bert.objective import Clock

__all__ = ["FusedHeads", "blend"]


@HEADS.register("fused")
class FusedHeads(Heads):
    """One classifier over the vectors of all exits, shared by all of them.

    At exit i the vectors s_1..s_i are known; each later one is predicted from s_i alone:

        s_j = tanh(W_j s_i + b_j)                      j > i, one W_j per target j
        (a_j, c_j) = V_j dropout(s_j) + v_j            2K numbers, one V_j per exit
        past = sum of a_j over j <= i                  future = sum of a_j over j > i
        gate = sigmoid(G tanh(mean of c_j over j <= i) + g)
        z_i = 2 gate past + (2 - 2 gate) future

    As in the authors' code: dropout falls on every vector, known or predicted, just before V_j,
    anew at each exit, and not on what the prediction is made from; the vectors of earlier exits
    pass no gradient back; W_1 exists although the first exit is never predicted, so that sizes
    agree with theirs. Their pooler per exit is the pooling `own_pooler`, not a part of this.

    The option `future` set to 0 leaves the predicted vectors out: z_i = 2 gate past. The predictors
    stay, and with them `futures`. The lowest `thaw` layers learn with a chance that grows.
    """

    keeps_memory = True

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__(settings)
        hidden, classes = settings.hidden_size, settings.classes
        self.looks_ahead = _looks_ahead(settings.options)
        self.thaw = float(settings.options.get("thaw", 0.0))
        exits = range(settings.exits)
        self.predictors = nn.ModuleList(nn.Linear(hidden, hidden) for _ in exits)
        self.projections = nn.ModuleList(nn.Linear(hidden, 2 * classes) for _ in exits)
        self.gate = nn.Linear(classes, classes)

    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        known = exit_index + 1
        vectors = reading.vectors(exit_index, past_learns=False)
        targets = list(self.predictors[known:]) if self.looks_ahead else []
        if targets:
            guesses = torch.stack([torch.tanh(predict(reading.pooled)) for predict in targets], 1)
            vectors = torch.cat([vectors, guesses], 1)
        shares, hints = self._project(vectors).chunk(2, -1)  # (rows, vectors, classes) each
        past = shares[:, :known].sum(1)
        future = shares[:, known:].sum(1) if targets else torch.zeros_like(past)
        gate = torch.sigmoid(self.gate(torch.tanh(hints[:, :known].mean(1))))
        return blend(past, future, gate)

    def _project(self, vectors: Tensor) -> Tensor:
        """(rows, vectors, hidden) -> (rows, vectors, 2 classes), each by its exit's own layer."""
        single = self.dropout(vectors).unbind(1)
        layers = self.projections[: len(single)]
        pairs = zip(layers, single, strict=True)
        return torch.stack([project(vector) for project, vector in pairs], 1)

    def futures(self, states: Tensor) -> Tensor:
        """Every exit's guess of every later exit's vector.

        Args:
            states: (rows, exits, hidden).

        Returns:
            (rows, exits, exits, hidden), of which [:, i, j] = tanh(W_j s_i + b_j) for j > i. The
            others are 0: what is known is not predicted.
        """
        exits = states.shape[1]
        columns = []
        for target, predict in enumerate(self.predictors):
            # The first target has no source: an empty product, whose gradient is 0 and not None,
            # as distributed training wants it.
            guesses = torch.tanh(predict(states[:, :target]))
            columns.append(nn.functional.pad(guesses, (0, 0, 0, exits - target)))
        return torch.stack(columns, 2)

    def handed_on(self, hidden: Tensor, layer: int, clock: Clock) -> Tensor:
        """GPFEE cuts the gradient below layer F, the option `thaw`, with chance 1 - step / total.

        Drawn per step and not per chunk, so that a batch in chunks is one batch.
        """
        if layer > self.thaw:
            return hidden
        draw = float(torch.rand((), generator=clock.generator(salt=1000 + layer)))
        return hidden.detach() if draw > clock.progress else hidden

    def final_parts(self) -> list[nn.Module]:
        return [self.projections[-1], self.gate]


def blend(past: Tensor, future: Tensor, gate: Tensor) -> Tensor:
    """2 g past + (2 - 2 g) future: their sum at g = 1/2. All (rows, classes), g in (0, 1)."""
    return 2 * gate * past + (2 - 2 * gate) * future


def _looks_ahead(options: Mapping[str, OptionValue]) -> bool:
    value = options.get("future", 1.0)
    if value not in (0.0, 1.0):
        raise UsageError(
            f"Option future is 1 (with predicted vectors) or 0 (without), got {value!r}."
        )
    return value == 1.0
