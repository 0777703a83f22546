"""Sentences of words as token rows, and what a model says of each word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from de3bert.data.tokens import Encoded
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.tokens import TextEncoder
from de3bert.progress import track
from de3bert.training.rows import Rows, collate

__all__ = ["WordRows", "word_logits"]

BATCH = 64


class WordRows(Rows):
    """Sentences as token rows; the labels of one are a list, cut where the sentence was cut."""

    def __init__(self, encoded: Encoded, labels: Sequence[NDArray[np.int64]]) -> None:
        self.lengths = encoded.lengths
        self.extras = {}
        self.numbers: list[list[int]] = [
            numbers.tolist()[: max(row["word_ids"])]
            for row, numbers in zip(encoded.rows, labels, strict=True)
        ]
        self.rows = [
            {**row, "labels": numbers}
            for row, numbers in zip(encoded.rows, self.numbers, strict=True)
        ]

    def tags(self) -> Tensor:
        """The tags of all words, sentence by sentence, (words,)."""
        return torch.tensor([tag for numbers in self.numbers for tag in numbers])


@torch.no_grad()
def word_logits(
    model: EarlyExitForSequenceClassification,
    rows: Rows,
    encoder: TextEncoder,
    progress: str | None = None,
) -> list[Tensor]:
    """Logits of all exits for every sentence, (words, exits, tags) each."""
    was_training = model.training
    model.eval()
    order = sorted(range(len(rows)), key=rows.lengths.__getitem__)
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    for start in track(range(0, len(rows), BATCH), progress):
        chosen = order[start : start + BATCH]
        batch = collate(encoder, [rows[index] for index in chosen])
        placed = {k: v.to(model.device) for k, v in batch.items() if k not in ("labels", "extras")}
        output = model(**placed)
        assert isinstance(output, EarlyExitOutput)
        assert output.exit_logits is not None
        counts = placed["word_ids"].amax(1).tolist()
        parts = output.exit_logits.float().cpu().split(counts)
        for index, part in zip(chosen, parts, strict=True):
            found[index] = part
    model.train(was_training)
    return found
