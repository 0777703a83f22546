"""The small model of a cascade: an encoder of its own, or the backbone's first layers."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from de3bert.errors import UsageError
from de3bert.methods import Method
from de3bert.methods.method import OptionValue
from de3bert.model.backbone import Backbone, load_backbone
from de3bert.model.cascade import Cascade, SmallModel, first_layers
from de3bert.model.layout import Layout, find_layout
from de3bert.model.pooling import OwnPooler, Pooling
from de3bert.model.tokens import load_tokenizer

__all__ = ["ChosenSmall", "chosen_small"]

Source = str | Path | nn.Module
# Words that tokenizers of one vocabulary may still read differently: capitals, accents, other
# scripts, and spaces.
PROBE = "A Café, isn't  it? ÉTÉ Straße 東京 🙂 x-1.5\tend"


@dataclass
class ChosenSmall:
    """What a cascade begins with, and what is known of it.

    Attributes:
        own: it is an encoder of its own, and no part of the backbone.
    """

    backbone: Backbone
    part: SmallModel
    own: bool

    def in_config(self, encoder: nn.Module) -> dict[str, Any]:
        """What the model's config says of it; the first layers are described by the backbone's."""
        if not self.own or not isinstance(encoder, Cascade):
            return {}
        return {
            "small_config": copy.deepcopy(self.part.module.config),
            "small_layout": encoder.small.layout.to_json(),
        }

    @torch.no_grad()
    def start_pooler(self, pooling: Pooling) -> None:
        """Its own pooler for its exit, as wide as it is; the other numbers stay 0."""
        pooler = self.backbone.pooler
        if pooler is None or not isinstance(pooling, OwnPooler):
            return
        dense, (rows, columns) = cast(nn.Linear, pooling.dense[0]), pooler.weight.shape
        for part in (dense.weight, dense.bias):
            part.zero_()
        dense.weight[:rows, :columns] = pooler.weight
        dense.bias[:rows] = pooler.bias


def chosen_small(
    method: Method,
    options: dict[str, OptionValue],
    backbone: Backbone,
    sources: tuple[Source, Source | None],
    layout: Layout,
    *,
    trust_remote_code: bool = False,
) -> ChosenSmall | None:
    """What the method's cascade begins with; None where it has none.

    Args:
        sources: of the backbone and of the small one, as they were asked for.
        layout: the backbone's.

    Raises:
        UsageError: the two do not read text with one vocabulary.
    """
    big, small = sources
    if method.cascade == "truncated":
        made = first_layers(backbone.module, layout, options)
        return ChosenSmall(replace(backbone, module=made.module), made, own=False)
    if method.cascade == "none" or small is None:
        return None
    loaded = load_backbone(small, trust_remote_code=trust_remote_code, called="small backbone")
    _check_vocabulary(small, loaded, big, backbone, trust_remote_code)
    return ChosenSmall(loaded, SmallModel(loaded.module, find_layout(loaded.module)), own=True)


def _check_vocabulary(
    small_source: Source, small: Backbone, source: Source, backbone: Backbone, trusted: bool
) -> None:
    """UsageError where the two models would not read the same numbers for a text."""
    sizes = [int(cast(Any, each.module.config).vocab_size) for each in (small, backbone)]
    if isinstance(small_source, nn.Module) or isinstance(source, nn.Module):
        if sizes[0] != sizes[1]:
            raise _other_words(small, backbone, f"{sizes[0]:,} and {sizes[1]:,} entries")
        return
    first, second = (
        load_tokenizer(str(each), trust_remote_code=trusted) for each in (small_source, source)
    )
    own, other = first.get_vocab(), second.get_vocab()
    if own != other:
        differing = len(own.items() ^ other.items())
        raise _other_words(
            small,
            backbone,
            f"{len(own):,} and {len(other):,} entries, of which {differing:,} are not in both",
        )
    if first(PROBE)["input_ids"] != second(PROBE)["input_ids"]:
        raise _other_words(small, backbone, "one vocabulary, but texts are cut into other pieces")
    if sizes[0] <= max(own.values()):
        raise UsageError(
            f"The small backbone {small.name} has embeddings for {sizes[0]:,} tokens, and its "
            f"tokenizer {len(own):,} entries: the two do not belong together."
        )


def _other_words(small: Backbone, backbone: Backbone, how: str) -> UsageError:
    return UsageError(
        f"The small backbone {small.name} reads text with another tokenizer than {backbone.name} "
        f"({how}), and a cascade cuts a text into tokens once, for both. Use a small encoder with "
        f"the tokenizer of {backbone.name}, such as one that was distilled from its family, or the "
        "method cascade-truncated, which takes the first layers of the backbone itself."
    )
