"""A cascade: a small complete model, then a big one that reads the text from scratch (CascadeBERT).

To all other code it is one encoder. Its layers are counted in those of the big model: first what
the small model costs, then the big model's own, the first of which starts again from its embedding
of the batch. What a row has cost is therefore the number of its exit layer: 2 or 14 for a model of
2 layers before one of 12 such layers. A small model of other layers costs what their matrix
products come to, in whole layers of the big one, rounded up (`layer_cost`): 1 or 13 for 4 layers
312 wide before 12 that are 768 wide.

States are as wide as the big model's; those of a narrower small model end in zeros.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model.depth import keep_layers
from de3bert.model.encoder import Encoder, Prepared, check_same_as_backbone
from de3bert.model.layer_cost import in_layers_of
from de3bert.model.layout import Layout

__all__ = ["Cascade", "CascadePrepared", "SmallModel", "first_layers", "make_encoder"]

SEGMENTS = "token_type_ids"


class SmallModel(NamedTuple):
    """What a cascade begins with."""

    module: PreTrainedModel
    layout: Layout
    units: int | None = None  # its cost in layers of the big model; None: to be counted


def first_layers(
    backbone: PreTrainedModel, layout: Layout, options: Mapping[str, OptionValue]
) -> SmallModel:
    """A copy of the first layers, as many as the option `small` says, with its own embeddings."""
    depth = int(cast(Any, backbone.config).num_hidden_layers)
    small = float(options.get("small", 2.0))
    if small != int(small) or not 1 <= small < depth:
        raise UsageError(
            f"small={small:g}, but the backbone has {depth} layers; take a small model of 1 to "
            f"{depth - 1}."
        )
    first = copy.deepcopy(backbone)
    keep_layers(first, layout, range(int(small)))
    return SmallModel(first, layout, int(small))


def make_encoder(
    backbone: PreTrainedModel,
    layout: Layout,
    small: SmallModel | None = None,
    *,
    check: bool = False,
) -> Encoder:
    """The encoder of a model: a plain one, or a cascade that begins with a small model.

    Args:
        check: prove on a toy batch that the loop over layers gives each backbone's own states.
    """
    make = check_same_as_backbone if check else Encoder
    big = make(backbone, layout)
    if small is None:
        return big
    first = make(small.module, small.layout)
    if _width(first) > _width(big):
        raise UsageError(
            f"The small model is {_width(first)} wide and the backbone {_width(big)}; take a small "
            "model that is not wider than the backbone."
        )
    cascade = Cascade(first, big, small.units or in_layers_of(first, big))
    return cast(Encoder, cascade)  # is one to whoever calls it


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
        return self.cascade.widened(self.small.embedded)

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
    """Two encoders behind the interface of one.

    Args:
        units: what the small one costs, in layers of the big one.
    """

    def __init__(self, small: Encoder, big: Encoder, units: int) -> None:
        super().__init__()
        self.small, self.big, self.units = small, big, units
        self.depth = units + big.depth
        self.layout, self.accepted = big.layout, small.accepted | big.accepted
        self.narrower = _width(big) - _width(small)  # numbers that the small one's states lack
        self.token_exits = None

    @property
    def backbone(self) -> PreTrainedModel:
        """The big model's."""
        return self.big.backbone

    @property
    def layers(self) -> nn.ModuleList:
        """The layers of the big model."""
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
        own = number - self.units
        if own < 1:
            return self._small_layers(prepared.small, number, hidden)
        return self.big.layer(prepared.big, own, prepared.big.embedded if own == 1 else hidden)

    own_layer = layer  # nothing stands in for a layer of a cascade

    def _small_layers(self, prepared: Prepared, unit: int, hidden: Tensor) -> Tensor:
        """The small model's layers that make up the unit: all of them are spread over its units."""
        first, last = (self.small.depth * end // self.units for end in (unit - 1, unit))
        states = self._narrowed(hidden)
        for number in range(first + 1, last + 1):
            states = self.small.layer(prepared, number, states)
        return self.widened(states)

    def widened(self, states: Tensor) -> Tensor:
        """States of the small model as wide as the big one's."""
        return nn.functional.pad(states, (0, self.narrower)) if self.narrower else states

    def _narrowed(self, states: Tensor) -> Tensor:
        return states[..., : -self.narrower] if self.narrower else states

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
        if number is not None and number <= self.units:
            return self.widened(self.small.readable(self._narrowed(hidden)))
        return self.big.readable(hidden)


def _width(encoder: Encoder) -> int:
    return int(cast(Any, encoder.backbone.config).hidden_size)
