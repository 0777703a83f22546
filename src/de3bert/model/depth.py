"""Which layers of the backbone a model keeps: all, the first few, or some spread over its depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model.layout import Layout
from de3bert.registry import Registry

__all__ = ["DEPTHS", "keep_layers"]

# Each: (layers of the backbone, options of the method) -> numbers of the layers kept, from 0.
Choice = Callable[[int, Mapping[str, OptionValue]], list[int]]
DEPTHS: Registry[Choice] = Registry("depth")


@DEPTHS.register("all")
def every(depth: int, options: Mapping[str, OptionValue]) -> list[int]:
    return list(range(depth))


@DEPTHS.register("first")
def first(depth: int, options: Mapping[str, OptionValue]) -> list[int]:
    """The first `layers` of them; half when the option is 0."""
    return list(range(_wanted(depth, options)))


@DEPTHS.register("spread")
def spread(depth: int, options: Mapping[str, OptionValue]) -> list[int]:
    """`layers` of them, evenly spread with the first and the last; DistilBERT: 0 2 4 7 9 11."""
    count = _wanted(depth, options)
    if count == 1:
        return [0]
    # Halves round down in the lower and up in the upper part, as in the published choice.
    places = [number * (depth - 1) / (count - 1) for number in range(count)]
    middle = (depth - 1) / 2
    return [int(place) if place < middle else int(place + 0.999) for place in places]


def keep_layers(backbone: PreTrainedModel, layout: Layout, kept: Sequence[int]) -> None:
    """Throws the other layers away; the config says how many are left."""
    config: Any = backbone.config
    depth = int(config.num_hidden_layers)
    if list(kept) == list(range(depth)):
        return
    stack = backbone.get_submodule(layout.stack)
    assert isinstance(stack, nn.ModuleList)
    if len(stack) == depth:  # ALBERT calls one layer many times: only the number changes
        backbone.set_submodule(layout.stack, nn.ModuleList(stack[index] for index in kept))
    config.num_hidden_layers = len(kept)
    for name, value in vars(config).items():  # such as ModernBERT's `layer_types`
        if isinstance(value, list) and len(value) == depth and name != "id2label":
            setattr(config, name, [value[index] for index in kept])


def _wanted(depth: int, options: Mapping[str, OptionValue]) -> int:
    count = int(float(options.get("layers", 0.0))) or max(1, depth // 2)
    if not 1 <= count <= depth:
        raise UsageError(f"layers={count}, but the backbone has {depth} layers; take 1 to {depth}.")
    return count
