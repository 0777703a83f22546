"""Operations of a model on one text, part by part: counted while it runs, or by formula.

Both count matrix products alone, those of attention included. torch's own counter does so for any
encoder; a bundle has no torch and is counted by the formula for layers of BERT's kind, which gives
the same numbers (a test holds them equal).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from de3bert.data.tokens import TokenRow
from de3bert.runtime.manifest import is_bundle
from de3lab.analysis.subject import Subject
from de3lab.study.flops import Sizes, products_of

if TYPE_CHECKING:
    from de3bert.runtime.torch_backend import TorchBackend

__all__ = ["COUNTER", "FORMULA", "Operations", "count_by_formula", "count_by_torch", "counted"]

COUNTER = "torch.utils.flop_counter"
FORMULA = "formula for BERT layers"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Operations:
    """What one text takes.

    Attributes:
        embedding: before the first layer.
        layers: of each layer, (depth,).
        exits: of each exit, by part: pooling, head, projection, distances, router.
        exit_layers: the layer of each exit.
    """

    embedding: float
    layers: tuple[float, ...]
    exits: tuple[Mapping[str, float], ...]
    exit_layers: tuple[int, ...]

    def until(self, layer: int, *, tested: bool = True) -> float:
        """Of a text that leaves at `layer`.

        Args:
            tested: whether all exits on the way were read, or the last one alone.
        """
        spent = self.embedding + sum(self.layers[:layer])
        for place, parts in zip(self.exit_layers, self.exits, strict=True):
            if place == layer or (tested and place < layer):
                spent += sum(parts.values())
        return spent


def counted(subject: Subject, rows: Sequence[TokenRow]) -> tuple[dict[int, Operations], str]:
    """Length in tokens -> operations of a text of that length; and who counted.

    Of each length one row is run: the count does not depend on the words.
    """
    by_length = {len(row["input_ids"]): row for row in rows}
    backend: Any = subject.classifier.backend
    if is_bundle(subject.path):
        from de3bert.runtime.load import read_config

        stored = Sizes.of_config(read_config(subject.path))
        sizes = replace(stored, exit_layers=backend.exit_layers)  # an export may leave some out
        return {n: count_by_formula(sizes, n) for n in by_length}, FORMULA
    return {n: count_by_torch(backend, row) for n, row in by_length.items()}, COUNTER


def count_by_formula(sizes: Sizes, tokens: int) -> Operations:
    """By arithmetic, from the sizes alone."""
    products = products_of(sizes, tokens)
    return Operations(
        products["embedding"],
        (products["layer"],) * sizes.exit_layers[-1],
        tuple(products["exits"]),
        sizes.exit_layers,
    )


def count_by_torch(backend: TorchBackend, row: TokenRow) -> Operations:
    """By running the row through all layers and all exits under torch's counter."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    model, layers, exits = backend.model, [], []
    # The counter knows the plain form of attention; the fused one of the CPU it counts as nothing.
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH):
        inputs = {k: v.to(model.device) for k, v in backend.encoder.pad([row]).items()}
        prepared, embedding = _count(functools.partial(model.encoder.prepare, **inputs))
        hidden, memory = prepared.embedded, None
        for number in range(1, model.encoder.depth + 1):
            hidden, spent = _count(model.encoder.layer, prepared, number, hidden)
            layers.append(spent)
            if number in backend.exit_layers:
                parts, pooled = _exit(model, hidden, prepared.mask, number, memory)
                exits.append(parts)
                own = pooled.unsqueeze(1)
                memory = own if memory is None else torch.cat([memory, own], 1)
    return Operations(embedding, tuple(layers), tuple(exits), tuple(backend.exit_layers))


def _exit(
    model: Any, hidden: Any, mask: Any, layer: int, memory: Any
) -> tuple[dict[str, float], Any]:
    """The parts of one exit, and the vector it reads, (1, hidden)."""
    from de3bert.model.heads import Reading

    index = model.exit_index(layer)
    states = model.encoder.readable(hidden, layer)
    pooled, pooling = _count(model.pooling, states, mask, index)
    kept = memory if model.heads.keeps_memory else None
    _, head = _count(model.classify, Reading(pooled, kept, states, mask), layer)
    parts = {"pooling": pooling, "head": head}
    if layer == model.config.exit_layers[-1]:
        return parts, pooled
    if model.projectors is not None:
        _, parts["projection"] = _count(model.project, pooled, index)
    if model.prototypes is not None:
        whole = _count(model.distances, pooled, layer)[1]
        parts["distances"] = whole - parts.get("projection", 0.0)
    if model.router is not None:
        _, parts["router"] = _count(model.certainty, pooled, layer)
    return parts, pooled


def _count(work: Callable[..., Result], *given: Any) -> tuple[Result, float]:
    """What a piece of work gives, and how many operations it took."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        result = work(*given)
    return result, float(counter.get_total_flops())
