"""The models as transformers knows them: one class for each task, all else is shared."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from de3bert.model.config import EarlyExitConfig
from de3bert.model.early_exit import MODELS, EarlyExitModel
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.words import as_words

__all__ = ["EarlyExitForSequenceClassification", "EarlyExitForTokenClassification"]


@MODELS.register("text-classification")
class EarlyExitForSequenceClassification(EarlyExitModel):
    """A text classifier with an exit after every layer.

    Example:
        >>> model = EarlyExitForSequenceClassification.from_backbone(
        ...     "google-bert/bert-base-uncased", num_labels=2, method="de3")
        >>> model(**tokenizer(["a joy"], return_tensors="pt")).exit_logits.shape
        torch.Size([1, 12, 2])
    """

    task = "text-classification"

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        extras: dict[str, Tensor] | None = None,
        return_dict: bool | None = None,
    ) -> EarlyExitOutput | tuple[Tensor, ...]:
        """Runs all layers and every exit.

        Args:
            extras: what some losses read besides the labels, one entry per row (a teacher's
                logits, for instance); the trainer supplies it.
        """
        inputs = _inputs(input_ids, attention_mask, token_type_ids, position_ids)
        output = self._run(inputs, labels, dict(extras or {}))
        return output if return_dict is not False else output.to_tuple()


@MODELS.register("token-classification")
class EarlyExitForTokenClassification(EarlyExitModel):
    """A token classifier with an exit after every layer.

    Told with `word_ids` which tokens are the pieces of a word, its outputs have a row for every
    word of the batch. Without, they are those of a token classifier of transformers: (rows, tokens,
    ...), and `labels` are -100 where a token is not to be tagged.
    """

    task = "token-classification"

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        extras: dict[str, Tensor] | None = None,
        word_ids: Tensor | None = None,
        halts: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> EarlyExitOutput | tuple[Tensor, ...]:
        """Runs all layers and every exit.

        Args:
            labels: (rows, words), or (rows, tokens) without `word_ids`; -100 is none.
            extras: what some losses read besides the labels; the trainer supplies it.
            word_ids: the word of each token, (rows, tokens). See `de3bert.model.words`.
            halts: the layer at which each word halts, (rows, words).
        """
        inputs = _inputs(input_ids, attention_mask, token_type_ids, position_ids)
        words = as_words(input_ids, word_ids, labels, halts, self.config.exit_layers)
        inputs |= {"word_ids": words.word_ids, "token_layers": words.token_layers}
        more = dict(extras or {}) | words.extras
        # Chunks are cut to their longest row, and without `word_ids` padding is a unit as well.
        output = self._run(
            inputs, words.labels, more, labelled=words.labelled, whole=word_ids is None
        )
        if word_ids is None:
            for name, value in output.items():
                if name != "loss":
                    output[name] = value.unflatten(0, input_ids.shape)
        return output if return_dict is not False else output.to_tuple()


def _inputs(ids: Tensor, mask: Tensor | None, types: Any, positions: Any) -> dict[str, Any]:
    given = torch.ones_like(ids) if mask is None else mask
    return {
        "input_ids": ids,
        "attention_mask": given,
        "token_type_ids": types,
        "position_ids": positions,
    }


AutoConfig.register(EarlyExitConfig.model_type, EarlyExitConfig)
AutoModelForSequenceClassification.register(EarlyExitConfig, EarlyExitForSequenceClassification)
AutoModelForTokenClassification.register(EarlyExitConfig, EarlyExitForTokenClassification)
