"""Floating-point operations of layers and exits for one text.

torch.utils.flop_counter counts matrix products, and it counts everything of an exit here: parts
say themselves what they do, those of plugins too. What it cannot count is done by formula: layers
as the paper counts them, two for each multiplication of a linear layer, 8 per element of a layer
norm, and nothing else; with 128 tokens and 768 wide a layer has 1,813,512,192. That leaves out the
two products of attention (scores and context, 4 S^2 d per layer); `attention=True` adds them.
Softmax, activations, biases and residuals are below one percent and never counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from de3bert.files import read_json
from de3lab.documents.run import FlopCounts

if TYPE_CHECKING:
    from de3bert.model import EarlyExitForSequenceClassification

__all__ = [
    "POOLERS",
    "Anatomy",
    "count_work",
    "edr",
    "embedding",
    "exit_costs",
    "exit_parts",
    "flops_at",
    "flops_of",
    "layer",
    "linear",
    "modules_of",
    "pooler",
]

NORM = 8  # per element: mean, variance, scale and shift, each counted twice
POOLERS = ("shared_pooler", "own_pooler", "mean_own_pooler")  # one dense layer at an exit

Result = TypeVar("Result")


def linear(inputs: int, outputs: int, vectors: float = 1.0) -> float:
    """A linear layer on so many vectors: two operations per weight."""
    return 2.0 * inputs * outputs * vectors


def embedding(hidden: int, tokens: float) -> float:
    """Its layer norm; looking up is free."""
    return NORM * hidden * tokens


def layer(
    hidden: int, inner: int, tokens: float, *, attention: bool = False, norms: bool = True
) -> float:
    """One encoder layer: four projections, the feed-forward part, two norms.

    2 S (4 d^2 + 2 d d_ff) + 2 * 8 S d, and 4 S^2 d with attention's own products.
    """
    dense = 4 * linear(hidden, hidden, tokens) + 2 * linear(hidden, inner, tokens)
    products = 4.0 * tokens * tokens * hidden if attention else 0.0
    return dense + (2 * NORM * hidden * tokens if norms else 0.0) + products


def edr(hidden: int) -> float:
    """Two cosine distances, each a product and two norms: 12 d."""
    return 12.0 * hidden


def pooler(anatomy: Anatomy) -> float:
    """The dense layer of a pooler, 2 d^2; the mean that it may read is no module of the paper's."""
    hidden = anatomy.hidden
    return linear(hidden, hidden) if anatomy.pooling in POOLERS else 0.0


@dataclass(frozen=True)
class Anatomy:
    """What a count needs to know of a model: two sizes, and its exits without weights."""

    inner: int
    model: EarlyExitForSequenceClassification

    @property
    def hidden(self) -> int:
        return int(self.model.config.hidden_size)

    @property
    def pooling(self) -> str:
        return str(self.model.config.pooling)

    @classmethod
    def of_folder(cls, folder: str | Path) -> Anatomy:
        """From a model folder's config; weights are not read."""
        return cls.of_config(read_json(Path(folder) / "config.json"))

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> Anatomy:
        """From a config as JSON has it."""
        import torch

        from de3bert.model import EarlyExitConfig, EarlyExitForSequenceClassification

        backbone = config["backbone_config"]
        hidden = int(backbone.get("hidden_size") or backbone.get("dim"))
        inner = backbone.get("intermediate_size") or backbone.get("hidden_dim") or 4 * hidden
        with torch.device("meta"):  # shapes without numbers
            made: Any = EarlyExitForSequenceClassification(EarlyExitConfig.from_dict(dict(config)))
        return cls(int(inner), made.eval())

    def exits(self, tokens: int) -> list[dict[str, float]]:
        """All matrix products of each exit, by part."""
        import torch

        found, memory = [], None
        with torch.inference_mode():
            states = torch.empty((1, tokens, self.hidden), device="meta")
            mask = torch.ones((1, tokens), dtype=torch.long, device="meta")
            for number in self.model.config.exit_layers:
                parts, memory = exit_parts(self.model, states, mask, number, memory)
                found.append(parts)
        return found


def exit_parts(
    model: Any, states: Any, mask: Any, layer: int, memory: Any
) -> tuple[dict[str, float], Any]:
    """Products of one exit (pooling, head, projection, distances, router), and what it leaves.

    Args:
        states: what the exit reads, (1, tokens, hidden).
        memory: the vectors of the exits before, (1, exits, hidden); None before the first.
    """
    import torch

    from de3bert.model.heads import Reading

    index = model.exit_index(layer)
    pooled, pooling = count_work(model.pooling, states, mask, index)
    kept = memory if model.heads.keeps_memory else None
    _, head = count_work(model.classify, Reading(pooled, kept, states, mask), layer)
    parts = {"pooling": pooling, "head": head}
    if layer != model.config.exit_layers[-1]:
        if model.projectors is not None:
            _, parts["projection"] = count_work(model.project, pooled, index)
        if model.prototypes is not None:
            # A product with all prototypes; it is made in full precision, which has no meta device.
            parts["distances"] = linear(model.config.hidden_size, len(model.config.label_names))
        if model.router is not None:
            _, parts["router"] = count_work(model.certainty, pooled, layer)
    own = pooled.unsqueeze(1)
    return parts, own if memory is None else torch.cat([memory, own], 1)


def count_work(work: Callable[..., Result], *given: Any) -> tuple[Result, float]:
    """What a piece of work gives, and how many operations torch counts."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    known = {torch.ops.aten._cdist_forward: _distances}
    with FlopCounterMode(display=False, custom_mapping=known) as counter:
        result = work(*given)
    return result, float(counter.get_total_flops())


def _distances(first: Sequence[int], second: Sequence[int], *_: Any, **__: Any) -> int:
    """Of (..., P, d) to (..., R, d): a square and a sum for each of d, as in a product."""
    return 2 * math.prod(first) * second[-2]


def exit_costs(anatomy: Anatomy, tokens: float) -> list[float]:
    """What each exit takes, the final one last; the paper's EDR reads the two likeliest classes.

    A mean over tokens is no module of the paper's. Counts of a text length between two whole ones
    lie between theirs.
    """
    low, high = (_exit_costs(anatomy, end(tokens)) for end in (math.floor, math.ceil))
    share = tokens - math.floor(tokens)
    return [a + share * (b - a) for a, b in zip(low, high, strict=True)]


def _exit_costs(anatomy: Anatomy, tokens: int) -> list[float]:
    return [
        parts["head"]
        + pooler(anatomy)
        + parts.get("projection", 0.0)
        + (edr(anatomy.hidden) if "distances" in parts else 0.0)
        + parts.get("router", 0.0)
        for parts in anatomy.exits(tokens)
    ]


def flops_of(anatomy: Anatomy, tokens: float) -> FlopCounts:
    """The counts of a model at a text length."""
    hidden, inner = anatomy.hidden, anatomy.inner
    return FlopCounts(
        tokens=tokens,
        embedding=embedding(hidden, tokens),
        layer=layer(hidden, inner, tokens),
        layer_with_attention=layer(hidden, inner, tokens, attention=True),
        exits=exit_costs(anatomy, tokens),
    )


def modules_of(anatomy: Anatomy, tokens: int) -> dict[str, float]:
    """One run of each module, counted as the paper counts; modules the model lacks are left out.

    The pooler, the classifier and the rest of an exit read one vector, layers read `tokens`.
    """
    exits = anatomy.exits(tokens)
    first, last = exits[0], exits[-1]
    found = {
        "embedding": embedding(anatomy.hidden, tokens),
        "encoder layer": layer(anatomy.hidden, anatomy.inner, tokens),
    }
    if anatomy.pooling in POOLERS:
        found["pooler"] = pooler(anatomy)
    found["prediction head"] = last["head"]
    if len(exits) > 1:
        if "projection" in first:
            found["prototypical network"] = first["projection"]
        found["internal classifier"] = first["head"]
        if "distances" in first:
            found["EDR"] = edr(anatomy.hidden)
        if "router" in first:
            found["router"] = first["router"]
    return found


def flops_at(counts: FlopCounts, exit_layers: Sequence[int], layers: float) -> float:
    """Operations when `layers` layers run in the mean: embedding, layers, exits on the way.

    Exits are charged as if all rows left at the mean layer; with exits of equal cost that is exact.
    """
    spent = np.cumsum([0.0, *counts.exits])
    exits = float(np.interp(layers, [0, *exit_layers], spent))
    return float(counts.embedding + layers * counts.layer_with_attention + exits)
