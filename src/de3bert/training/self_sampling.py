"""Training on halted words as they will occur (TOKEE's second phase).

Where a word halts is drawn by running the rule on what the model of the first phase said of the
sentence at every exit, with a threshold and a window drawn for each sentence and pass. The numbers
are those of the authors' code: windows of 5 to 15 words, thresholds up to 0.25, doubled in the
upper half of the layers. A share of the sentences runs at full depth, and some take the smallest
window or the largest threshold, so that training also sees both ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from de3bert.errors import UsageError
from de3bert.exits.signals.formulas import entropy
from de3bert.exits.units import widest_around
from de3bert.training.batch_hook import PerPass
from de3bert.training.hook import HOOKS
from de3bert.training.inference import exit_logits

__all__ = ["SelfSampling", "halting_layers"]

WINDOWS = (5, 7, 9, 11, 13, 15)
THRESHOLDS = (0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25)
EXTREME = 0.2  # share of the sentences with the smallest window or the largest threshold


def halting_layers(
    signals: Tensor, exit_layers: list[int], window: int, threshold: float
) -> list[int]:
    """Where each word of one sentence halts: the first exit with a windowed signal below tau.

    Args:
        signals: of the internal exits, (words, exits - 1).
        threshold: tau; twice that in the upper half of the layers.
    """
    depth = exit_layers[-1]
    scores = widest_around(signals.numpy(), np.zeros(len(signals), dtype=np.int64), window)
    doubled = [2.0 if layer > depth / 2 else 1.0 for layer in exit_layers[:-1]]
    passed = scores < threshold * np.asarray(doubled)
    at_last = np.ones((len(passed), 1), dtype=np.bool_)
    first = np.concatenate([passed, at_last], axis=1).argmax(axis=1)
    return [exit_layers[number] for number in first]


@HOOKS.register("self_sampling")
class SelfSampling(PerPass):
    """Gives every pass `halts`, (rows, words): the layer at which each word halts."""

    salt = 9

    def check(self) -> None:
        share = float(self.context.options["full_share"])
        if not 0 <= share <= 1 - EXTREME:
            raise UsageError(f"Option full_share lies in 0 to {1 - EXTREME:g}, got {share:g}.")

    def before(self) -> None:
        super().before()
        context, rows = self.context, self.context.rows
        said = exit_logits(context.model, rows, context.encoder, context.label("where words halt"))
        unsure = entropy(said[:, :-1]).split(rows.units)  # (words, exits - 1) each
        rows.extras["unsure"] = torch.nn.utils.rnn.pad_sequence(unsure, batch_first=True)

    def before_pass(self, given: dict[str, Any], generator: torch.Generator) -> None:
        extras = dict(given["extras"])
        unsure = extras.pop("unsure").cpu()  # (rows, most words, exits - 1)
        words = given["word_ids"].amax(1).tolist()
        depth = self.context.model.encoder.depth
        halts = torch.full(unsure.shape[:2], depth)
        for row, count in enumerate(words):
            drawn = self._draw(generator)
            if drawn is not None:
                layers = list(self.context.model.config.exit_layers or ())
                halts[row, :count] = torch.tensor(
                    halting_layers(unsure[row, :count], layers, *drawn)
                )
        given["extras"] = extras
        given["halts"] = halts.to(given["word_ids"].device)

    def _draw(self, generator: torch.Generator) -> tuple[int, float] | None:
        """Window and threshold of a sentence, or None when it runs at full depth."""
        kind, one, other, side = torch.rand(4, generator=generator).tolist()
        full = float(self.context.options["full_share"])
        if kind < full:
            return None
        window = WINDOWS[int(one * len(WINDOWS))]
        threshold = THRESHOLDS[int(other * len(THRESHOLDS))]
        if kind < full + EXTREME:
            return (WINDOWS[0], threshold) if side < 0.5 else (window, THRESHOLDS[-1])
        return window, threshold
