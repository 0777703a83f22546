"""A cascade: a small complete model, then a big one that reads the text from scratch (CascadeBERT).

To all other code it is one encoder. Its layers are those of the small model, then those of the big
one; the first layer of the big model starts again from the big model's embedding of the batch. What
a row has cost is therefore the number of its exit layer: 2 or 14 for a model of 2 layers before one
of 12.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model.depth import DEPTHS, keep_layers
from de3bert.model.encoder import Encoder, Prepared, check_same_as_backbone
from de3bert.model.layout import Layout

__all__ = ["Cascade", "CascadePrepared", "cascade_exits", "checked_cascade", "make_encoder"]

SEGMENTS = "token_type_ids"


@DEPTHS.register("cascade")
def whole(depth: int, options: Mapping[str, OptionValue]) -> list[int]:
    """All layers; those of the small model are copies of the first ones and come on top."""
    checked_cascade(depth, options)
    return list(range(depth))


def checked_cascade(depth: int, options: Mapping[str, OptionValue]) -> int:
    """The number of layers of the small model: option `small`."""
    small = float(options.get("small", 2.0))
    if small != int(small) or not 1 <= small < depth:
        raise UsageError(
            f"small={small:g}, but the backbone has {depth} layers; take a small model of 1 to "
            f"{depth - 1}."
        )
    return int(small)


def make_encoder(
    backbone: PreTrainedModel, layout: Layout, small: int = 0, *, check: bool = False
) -> Encoder:
    """The encoder of a model: a plain one, or a cascade that begins with `small` layers.

    The small model is a copy of the backbone's first layers, with embeddings of its own.

    Args:
        check: prove on a toy batch that the loop over layers gives each backbone's own states.
    """
    make = check_same_as_backbone if check else Encoder
    if not small:
        return make(backbone, layout)
    first = copy.deepcopy(backbone)
    keep_layers(first, layout, range(small))
    cascade = Cascade(make(first, layout), make(backbone, layout))
    return cast(Encoder, cascade)  # is one to whoever calls it


def cascade_exits(small: int, depth: int, asked: list[int] | None) -> list[int]:
    """Exits are at the end of each model; others are refused."""
    own = [small, depth]
    if asked is not None and sorted({*asked, depth}) != own:
        raise UsageError(
            f"A cascade of {small} and {depth - small} layers has its exits at the end of each "
            f"model, exit_layers={own}; got {asked}. Leave exit_layers out."
        )
    return own


class CascadePrepared:
    """A batch before a cascade. Each model embeds it when the first of its layers is run."""

    def __init__(self, cascade: Cascade, inputs: dict[str, Tensor]) -> None:
        self.cascade = cascade
        self.inputs = inputs  # (rows, tokens) each
        self.token_layers = None

    @cached_property
    def small(self) -> Prepared:
        return self.cascade.small.prepare(**self.inputs)

    @cached_property
    def big(self) -> Prepared:
        return self.cascade.big.prepare(**self.inputs)

    @property
    def embedded(self) -> Tensor:
        """(rows, tokens, hidden), for the small model."""
        return self.small.embedded

    @property
    def mask(self) -> Tensor:
        return self.inputs["attention_mask"]

    @property
    def context(self) -> Any:
        """What the big model needs: the text itself."""
        return self.inputs

    @context.setter
    def context(self, inputs: dict[str, Tensor]) -> None:
        self.inputs = inputs


class Cascade(nn.Module):
    """Two encoders behind the interface of one."""

    def __init__(self, small: Encoder, big: Encoder) -> None:
        super().__init__()
        self.small, self.big = small, big
        self.depth = small.depth + big.depth
        self.layout, self.accepted = big.layout, big.accepted
        self.token_exits = None

    @property
    def backbone(self) -> PreTrainedModel:
        """The big model's."""
        return self.big.backbone

    @property
    def layers(self) -> nn.ModuleList:
        """The layers of the big model, of which the small model's were copies."""
        return self.big.layers

    def prepare(
        self, input_ids: Tensor, attention_mask: Tensor | None, **inputs: Any
    ) -> CascadePrepared:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        given = {k: v for k, v in inputs.items() if k in self.accepted and v is not None}
        if SEGMENTS in self.accepted:  # always the same inputs: a graph cannot take some or others
            given.setdefault(SEGMENTS, torch.zeros_like(input_ids))
        return CascadePrepared(self, {"input_ids": input_ids, "attention_mask": mask, **given})

    def layer(self, prepared: CascadePrepared, number: int, hidden: Tensor) -> Tensor:
        """The states after layer `number` (1..depth), (rows, tokens, hidden)."""
        own = number - self.small.depth
        if own < 1:
            return self.small.layer(prepared.small, number, hidden)
        return self.big.layer(prepared.big, own, prepared.big.embedded if own == 1 else hidden)

    own_layer = layer  # nothing stands in for a layer of a cascade

    def internal_parts(self) -> list[nn.Module]:
        """The small model answers at the first exit alone."""
        return [self.small]

    def set_embeddings(self, embeddings: nn.Module) -> None:
        """The big model takes them over; the small one's grow or shrink with them."""
        self.big.set_embeddings(embeddings)
        size = cast(nn.Embedding, embeddings).num_embeddings
        self.small.backbone.resize_token_embeddings(size)

    def readable(self, hidden: Tensor, number: int | None = None) -> Tensor:
        """The states as an exit should read them, each model through its own final norm.

        Args:
            number: the layer they come from, by default the last.
        """
        first = number is not None and number <= self.small.depth
        return (self.small if first else self.big).readable(hidden)
