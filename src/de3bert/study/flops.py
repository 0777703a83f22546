"""Floating-point operations of layers and exits for one text.

Counted as the paper counts: two for each multiplication of a linear layer, 8 per element of a layer
norm, and nothing else; with 128 tokens and 768 wide a layer has 1,813,512,192. That leaves out the
two products of attention (scores and context, 4 S^2 d per layer); `attention=True` adds them.
Softmax, activations, biases and residuals are below one percent and never counted.

`modules_of` is the paper's table. `products_of` is the other honest count: all matrix products,
attention's included, and nothing else, which is what torch.utils.flop_counter counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "POOLERS",
    "Sizes",
    "edr",
    "embedding",
    "exit_costs",
    "flops_at",
    "flops_of",
    "layer",
    "linear",
    "modules_of",
    "products_of",
]

NORM = 8  # per element: mean, variance, scale and shift, each counted twice
POOLERS = ("shared_pooler", "own_pooler")
POLICY_WIDTH = 32


def linear(inputs: int, outputs: int, vectors: float = 1.0) -> float:
    """A linear layer on so many vectors: two operations per weight."""
    return 2.0 * inputs * outputs * vectors


def embedding(hidden: int, tokens: float) -> float:
    """Its layer norm; looking up is free."""
    return NORM * hidden * tokens


def layer(hidden: int, inner: int, tokens: float, *, attention: bool = False) -> float:
    """One encoder layer: four projections, the feed-forward part, two norms.

    2 S (4 d^2 + 2 d d_ff) + 2 * 8 S d, and 4 S^2 d with attention's own products.
    """
    dense = 4 * linear(hidden, hidden, tokens) + 2 * linear(hidden, inner, tokens)
    products = 4.0 * tokens * tokens * hidden if attention else 0.0
    return dense + 2 * NORM * hidden * tokens + products


def edr(hidden: int) -> float:
    """Two cosine distances, each a product and two norms: 12 d."""
    return 12.0 * hidden


@dataclass(frozen=True)
class Sizes:
    """What the count needs to know of a model."""

    hidden: int
    inner: int
    classes: int
    exit_layers: tuple[int, ...]
    pooling: str = "mean"
    prototypes: str = "none"
    heads: str = "linear"
    router: str = "none"
    head_size: int = 128  # of attention heads

    @classmethod
    def of_model(cls, folder: str | Path) -> Sizes:
        """From a model folder's config."""
        text = (Path(folder) / "config.json").read_text(encoding="utf-8")
        return cls.of_config(json.loads(text))

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> Sizes:
        """From a config as JSON has it."""
        backbone = config["backbone_config"]
        hidden = int(backbone.get("hidden_size") or backbone.get("dim"))
        inner = backbone.get("intermediate_size") or backbone.get("hidden_dim") or 4 * hidden
        parts = {
            name: str(config[name])
            for name in ("pooling", "prototypes", "heads", "router")
            if name in config
        }
        size = int((config.get("method_options") or {}).get("head_size", 128))
        layers = tuple(int(each) for each in config["exit_layers"])
        return cls(hidden, int(inner), len(config["id2label"]), layers, **parts, head_size=size)


def _head(sizes: Sizes, index: int, tokens: float) -> float:
    """The cost of exit number `index`, from 0, as its kind of heads states it."""
    from de3bert.model.heads import HEADS, HeadSizes  # here: they need torch

    kind = HEADS[sizes.heads if sizes.heads in HEADS else "linear"]
    options = {"head_size": float(sizes.head_size)}
    own = HeadSizes(sizes.hidden, sizes.classes, len(sizes.exit_layers), options)
    return kind.flops(own, index, tokens)


def _heads_known(sizes: Sizes) -> bool:
    from de3bert.model.heads import HEADS

    return sizes.heads in HEADS and HEADS[sizes.heads].counts_flops


def exit_costs(sizes: Sizes, tokens: float) -> list[float]:
    """What each exit takes, the final one last; it has neither projection nor router."""
    shared = linear(sizes.hidden, sizes.hidden) if sizes.pooling in POOLERS else 0.0
    last = len(sizes.exit_layers) - 1
    return [
        _head(sizes, i, tokens) + shared + (_decision(sizes) if i < last else 0.0)
        for i in range(last + 1)
    ]


def _decision(sizes: Sizes) -> float:
    """What an internal exit adds to its head: projection and distances, or a router."""
    total = 0.0
    if sizes.prototypes == "linear":
        total += linear(sizes.hidden, sizes.hidden)
    if sizes.prototypes != "none":
        total += edr(sizes.hidden)
    return total + _router(sizes)


def _router(sizes: Sizes) -> float:
    if sizes.router == "lte":
        return linear(sizes.hidden, 1)
    if sizes.router == "policy":
        return linear(sizes.hidden, POLICY_WIDTH) + linear(POLICY_WIDTH, 1)
    return 0.0


def flops_of(sizes: Sizes, tokens: float) -> dict[str, Any]:
    """The counts of a model at a text length, as JSON."""
    return {
        "tokens": tokens,
        "embedding": embedding(sizes.hidden, tokens),
        "layer": layer(sizes.hidden, sizes.inner, tokens),
        "layer_with_attention": layer(sizes.hidden, sizes.inner, tokens, attention=True),
        "exits": exit_costs(sizes, tokens),
        "heads_known": _heads_known(sizes),  # others are counted as linear ones
    }


def modules_of(sizes: Sizes, tokens: float) -> dict[str, float]:
    """One run of each module, counted as the paper counts; modules the model lacks are left out.

    The pooler, the classifier and the rest of an exit read one vector, layers read `tokens`.
    """
    last = len(sizes.exit_layers) - 1
    found = {
        "embedding": embedding(sizes.hidden, tokens),
        "encoder layer": layer(sizes.hidden, sizes.inner, tokens),
    }
    if sizes.pooling in POOLERS:
        found["pooler"] = linear(sizes.hidden, sizes.hidden)
    found["prediction head"] = _head(sizes, last, tokens)
    if last:
        if sizes.prototypes == "linear":
            found["prototypical network"] = linear(sizes.hidden, sizes.hidden)
        found["internal classifier"] = _head(sizes, 0, tokens)
        if sizes.prototypes != "none":
            found["EDR"] = edr(sizes.hidden)
        if sizes.router != "none":
            found["router"] = _router(sizes)
    return found


def products_of(sizes: Sizes, tokens: float) -> dict[str, Any]:
    """All matrix products of embedding, a layer and each part of each exit, of BERT's kind.

    Distances are products with all K prototypes, 2 d K; the paper's EDR reads the two likeliest.
    """
    norms = 2 * NORM * sizes.hidden * tokens
    last = len(sizes.exit_layers) - 1
    return {
        "embedding": 0.0,
        "layer": layer(sizes.hidden, sizes.inner, tokens, attention=True) - norms,
        "exits": [
            {
                "pooling": _pooling(sizes, tokens),
                "head": _head(sizes, i, tokens),
                **(_decision_products(sizes) if i < last else {}),
            }
            for i in range(last + 1)
        ],
    }


def _pooling(sizes: Sizes, tokens: float) -> float:
    """A pooler reads the first token; a mean is a product with the weights of the tokens."""
    if sizes.pooling in POOLERS:
        return linear(sizes.hidden, sizes.hidden)
    return 2.0 * sizes.hidden * tokens if sizes.pooling == "mean" else 0.0


def _decision_products(sizes: Sizes) -> dict[str, float]:
    found = {}
    if sizes.prototypes == "linear":
        found["projection"] = linear(sizes.hidden, sizes.hidden)
    if sizes.prototypes != "none":
        found["distances"] = linear(sizes.hidden, sizes.classes)
    if sizes.router != "none":
        found["router"] = _router(sizes)
    return found


def flops_at(counts: dict[str, Any], exit_layers: Sequence[int], layers: float) -> float:
    """Operations when `layers` layers run in the mean: embedding, layers, exits on the way.

    Exits are charged as if all rows left at the mean layer; with exits of equal cost that is exact.
    """
    spent = np.cumsum([0.0, *counts["exits"]])
    exits = float(np.interp(layers, [0, *exit_layers], spent))
    return float(counts["embedding"] + layers * counts["layer_with_attention"] + exits)
