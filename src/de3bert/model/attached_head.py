"""The final head of an existing classifier, kept unchanged, after exits of ours."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from de3bert.errors import De3Error
from de3bert.model.head import HEADS, Heads, HeadSettings, Reading

__all__ = ["AttachedHeads", "OriginalHead", "taken_apart"]


class GivenStates(nn.Module):
    """Stands in a classifier where its encoder was: returns the states that it is handed.

    A pooler belongs to the head as soon as the head reads what it gives, so it lives here.
    """

    def __init__(self, encoder: PreTrainedModel) -> None:
        super().__init__()
        self.pooler: nn.Module | None = getattr(encoder, "pooler", None)
        # ALBERT's pooler is a bare linear layer, its activation lies beside it.
        self.activation: nn.Module | None = getattr(encoder, "pooler_activation", None)

    def forward(
        self, *arguments: Any, inputs_embeds: Tensor, **keywords: Any
    ) -> BaseModelOutputWithPooling:
        pooled = None
        if isinstance(self.pooler, nn.Linear):
            pooled = self.pooler(inputs_embeds[:, 0])
            pooled = pooled if self.activation is None else self.activation(pooled)
        elif self.pooler is not None:
            pooled = self.pooler(inputs_embeds)
        states = cast(torch.FloatTensor, inputs_embeds)
        return BaseModelOutputWithPooling(last_hidden_state=states, pooler_output=pooled)


class OriginalHead(nn.Module):
    """All of a transformers classifier behind its encoder, run by its own `forward`.

    (rows, tokens, hidden), (rows, tokens) -> (rows, classes)
    """

    def __init__(self, classifier: PreTrainedModel) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        output = self.classifier(inputs_embeds=states, attention_mask=mask, return_dict=True)
        return cast(Tensor, output.logits)


def taken_apart(classifier: PreTrainedModel) -> tuple[PreTrainedModel, OriginalHead]:
    """The encoder of a transformers classifier, and everything behind it."""
    place = classifier.base_model_prefix
    encoder = getattr(classifier, place, None)
    if not isinstance(encoder, PreTrainedModel):
        raise De3Error(
            f"{type(classifier).__name__} stores its encoder under an unknown name, so its head "
            "cannot be taken over; this family is not supported."
        )
    setattr(classifier, place, GivenStates(encoder))
    return encoder, OriginalHead(classifier)


@HEADS.register("attached")
class AttachedHeads(Heads):
    """z = W_m s + b_m at exits before the last; at the last the classifier's own head.

    Attributes:
        final: set by the model that owns these heads.
    """

    reads_tokens = True
    final: OriginalHead

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__(settings)
        self.exits = nn.ModuleList(settings.linear() for _ in range(settings.exits - 1))

    def forward(self, reading: Reading, exit_index: int) -> Tensor:
        if exit_index == len(self.exits):
            return self.final(reading.tokens, reading.mask)
        return self.exits[exit_index](self.dropout(reading.pooled))

    def internal_parts(self) -> list[nn.Module]:
        return list(self.exits)

    def final_parts(self) -> list[nn.Module]:
        return [self.final]
