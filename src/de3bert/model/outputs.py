"""What a forward pass over all exits gives. Every field is batch first."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers.utils.generic import ModelOutput

__all__ = ["EarlyExitOutput"]


@dataclass
class EarlyExitOutput(ModelOutput):
    """Output of `EarlyExitModel`; rows are texts, or all words of a batch of sentences.

    Of a tagger that is not told which tokens are words, tokens stand instead of rows: (rows,
    tokens, ...).

    Args:
        loss: the method's whole objective, when labels were given.
        logits: (rows, classes), the final head's.
        exit_logits: (rows, exits, classes), the last exit being the final head.
        distances: (rows, exits - 1, classes), cosine distances to the class prototypes.
        projected: (rows, exits - 1, hidden), the prototypical networks' outputs.
        certainty: (rows, exits - 1), how sure the router is that a row may leave.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    exit_logits: Tensor | None = None
    distances: Tensor | None = None
    projected: Tensor | None = None
    certainty: Tensor | None = None
