"""Operations of a model on one text, part by part: counted while it runs, or by formula.

Both count matrix products alone, those of attention included. torch's own counter does so for any
encoder; a bundle has no layers of torch, and they are counted by the formula for those of BERT's
kind, which gives the same numbers (a test holds them equal).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from de3bert.data.tokens import TokenRow
from de3bert.runtime.load import read_config
from de3bert.runtime.manifest import is_bundle
from de3lab.analysis.subject import Subject
from de3lab.study.flops import Anatomy, count_work, exit_parts, layer

if TYPE_CHECKING:
    from de3bert.runtime.torch_backend import TorchBackend

__all__ = ["COUNTER", "FORMULA", "Operations", "count_by_formula", "count_by_torch", "counted"]

COUNTER = "torch.utils.flop_counter"
FORMULA = "formula for BERT layers"


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
        anatomy = Anatomy.of_config(read_config(subject.path))
        exits = backend.exit_layers  # an export may leave some out
        return {n: count_by_formula(anatomy, n, exits) for n in by_length}, FORMULA
    return {n: count_by_torch(backend, row) for n, row in by_length.items()}, COUNTER


def count_by_formula(
    anatomy: Anatomy, tokens: int, exit_layers: Sequence[int] | None = None
) -> Operations:
    """Layers of BERT's kind by arithmetic, exits by torch; all of them, or those at some layers."""
    every = dict(zip(anatomy.model.config.exit_layers, anatomy.exits(tokens), strict=True))
    kept = tuple(exit_layers or every)
    products = layer(anatomy.hidden, anatomy.inner, tokens, attention=True, norms=False)
    return Operations(0.0, (products,) * kept[-1], tuple(every[number] for number in kept), kept)


def count_by_torch(backend: TorchBackend, row: TokenRow) -> Operations:
    """By running the row through all layers and all exits under torch's counter."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    model, layers, exits = backend.model, [], []
    # The counter knows the plain form of attention; the fused one of the CPU it counts as nothing.
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH):
        inputs = {k: v.to(model.device) for k, v in backend.encoder.pad([row]).items()}
        prepared, embedding = count_work(functools.partial(model.encoder.prepare, **inputs))
        hidden, memory = prepared.embedded, None
        for number in range(1, model.encoder.depth + 1):
            hidden, spent = count_work(model.encoder.layer, prepared, number, hidden)
            layers.append(spent)
            if number in backend.exit_layers:
                states = model.encoder.readable(hidden, number)
                parts, memory = exit_parts(model, states, prepared.mask, number, memory)
                exits.append(parts)
    return Operations(embedding, tuple(layers), tuple(exits), tuple(backend.exit_layers))
