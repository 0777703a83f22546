"""The parts of a model that become graphs: the start, each stretch of layers, each distance test.

Whatever the layers need besides the states (masks, rotary tables, position biases) is computed once
by the start and handed on as `context`; the engine cuts it down when rows leave.

The exits of a tagger read every token, and the engine takes the first one of each word. The last
layer that changes a token is part of its context, so that words can be halted between two graphs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from de3bert.errors import UsageError
from de3bert.export.templates import module_kind
from de3bert.model import EarlyExitModel
from de3bert.model.encoder import Call, Prepared
from de3bert.model.heads import Reading
from de3bert.model.prototypes import TINY
from de3bert.tasks import TASKS

__all__ = [
    "Distances",
    "Segment",
    "Start",
    "context_axes",
    "context_names",
    "program_kind",
    "stretches",
]

Model = EarlyExitModel
Axes = tuple[str | int, ...]  # per axis: "rows", "tokens", or its fixed size


def stretches(exits: Sequence[int]) -> list[tuple[int, int]]:
    """First and last layer of every stretch between exits: (2, 5) -> [(1, 2), (3, 5)]."""
    return [(before + 1, layer) for before, layer in zip((0, *exits), exits, strict=False)]


class Stretch(nn.Module):
    """Layers `first` to `last` and the exit behind them."""

    def __init__(self, model: Model, first: int, last: int) -> None:
        super().__init__()
        self.model = model
        self.first, self.last = first, last
        self.final = last == model.encoder.depth
        self.has_distances = model.prototypes is not None and not self.final
        self.has_certainty = model.router is not None and not self.final
        self.gives_memory = model.heads.keeps_memory and not self.final
        self.takes_memory = model.heads.keeps_memory and first > 1
        self.per_token = TASKS[model.config.task].splits_words

    def run(
        self, prepared: Prepared, hidden: Tensor, pool: Tensor, memory: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """What `outputs` names."""
        model = self.model
        for number in range(self.first, self.last + 1):
            hidden = model.encoder.layer(prepared, number, hidden)
        read = model.encoder.readable(hidden, self.last)
        if self.per_token:
            pooled = read  # a word is its first token, there is nothing to pool
        else:
            pooled = model.pooling.read(read, pool, model.exit_index(self.last))
        mask = (pool > 0).long() if model.heads.reads_tokens else pool
        logits = model.classify(Reading(pooled, memory, read, mask), self.last)
        if self.final:
            return (logits,)
        given = [hidden, logits]
        if self.has_distances:
            given.append(pooled)
        if self.has_certainty:
            given.append(model.certainty(pooled, self.last))
        if self.gives_memory:
            own = pooled.unsqueeze(1)
            given.append(own if memory is None else torch.cat([memory, own], 1))
        return tuple(given)

    def kind(self, prepared: Prepared) -> Hashable:
        """Equal for stretches that are one program with other weights, as far as modules tell."""
        model, numbers = self.model, range(self.first, self.last + 1)
        calls = [prepared.calls[number - 1] for number in numbers]
        # Where tokens stop, the number of a layer is part of the program; heads with memory read as
        # many vectors as there were exits.
        alone = prepared.token_layers is not None or model.heads.keeps_memory
        temperatures = model.config.temperatures
        return (
            tuple(module_kind(model.encoder.layers[call.index]) for call in calls),
            tuple(_call_kind(call, prepared) for call in calls),
            temperatures[model.exit_index(self.last)] if temperatures else None,
            self.first if alone else None,
        )

    def roles(self, prepared: Prepared) -> dict[str, Tensor]:
        """The weights of this stretch by what they are to it, whichever layer and exit it has."""
        found: dict[str, Tensor] = {}
        for offset, number in enumerate(range(self.first, self.last + 1)):
            layer = self.model.encoder.layers[prepared.calls[number - 1].index]
            for name, weight in (*layer.named_parameters(), *layer.named_buffers()):
                found[f"layer {offset}: {name}"] = weight
        exit_number = str(self.model.exit_index(self.last))
        for name, weight in (*self.model.named_parameters(), *self.model.named_buffers()):
            if not name.startswith("encoder.layers."):
                parts = name.split(".")
                if exit_number in parts:
                    parts[parts.index(exit_number)] = "*"
                found[".".join(parts)] = weight
        return found

    @property
    def outputs(self) -> list[str]:
        """States (unless this is the end), logits, the vector that distances are taken of, the
        router's certainty, and the vectors of the exits so far; each where there is such a thing.
        """
        if self.final:
            return ["logits"]
        there = {
            "hidden_out": True,
            "logits": True,
            "pooled": self.has_distances,
            "certainty": self.has_certainty,
            "memory_out": self.gives_memory,
        }
        return [name for name, present in there.items() if present]


class Start(Stretch):
    """Embeddings, then the first stretch; also gives the context of all later ones."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        prepared = self.model.encoder.prepare(
            input_ids, attention_mask, token_type_ids=token_type_ids
        )
        pool = self.model.pooling.weights(attention_mask, self.model.dtype)
        results = self.run(prepared, prepared.embedded, pool)
        let_halt(self.model, prepared, input_ids)
        return results if self.final else (*results, *context(prepared, pool))


class Segment(Stretch):
    """A later stretch: states and context in, states and exit out."""

    def forward(
        self, hidden: Tensor, context: list[Tensor], memory: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        # The backbone is asked for its layer calls on a text of nothing; only their form is used,
        # the tensors in them are replaced by the real ones, so the embedding of it is dead code.
        blank = torch.zeros(hidden.shape[:2], dtype=torch.long, device=hidden.device)
        prepared = self.model.encoder.prepare(blank, torch.ones_like(blank))
        let_halt(self.model, prepared, blank)
        *given, pool = context
        own = call_tensors(prepared)
        place = {id(tensor): new for tensor, new in zip(own, given, strict=True)}
        prepared.context = pytree.tree_map(lambda leaf: place.get(id(leaf), leaf), prepared.context)
        return self.run(prepared, hidden, pool, memory)


class Distances(nn.Module):
    """Cosine distances to the prototypes of one exit: d_k = |h / |h| - p_k|^2 / 2 with h = W s + b.

    The same number as 1 - cos, which would keep few digits where prototypes lie close.
    (rows, hidden) -> (rows, K)
    """

    unit: Tensor

    def __init__(self, model: Model, layer: int) -> None:
        super().__init__()
        index = model.exit_index(layer)
        assert model.prototypes is not None  # only asked for where there are some
        vectors = model.prototypes.vectors[index].float()
        self.register_buffer("unit", nn.functional.normalize(vectors, dim=-1, eps=TINY))
        self.projector = model.projectors[index] if model.projectors is not None else None

    def forward(self, pooled: Tensor) -> Tensor:
        vector = pooled if self.projector is None else self.projector(pooled)
        length_one: Tensor = torch.onnx.ops.symbolic(
            "LpNormalization", (vector,), {"axis": -1, "p": 2}, dtype=vector.dtype,
            shape=vector.shape,
        )  # fmt: skip
        between = length_one[:, None] - self.unit
        return (between * between).sum(-1) * 0.5


def program_kind(model: Model) -> Hashable:
    """Equal for models whose graphs differ in their weights alone, as far as modules tell.

    What a policy or a training reads is no part of a graph. Distances are graphs of their own.
    """
    shown = [each.to_dict() for each in model.config.encoder_configs]
    backbone = getattr(model.encoder, "backbone", None)
    settings = {
        "encoders": [
            {name: value for name, value in config.items() if not name.startswith("_")}
            for config in shown
        ],
        "attention": getattr(getattr(backbone, "config", None), "_attn_implementation", None),
        "task": model.config.task,
        "temperatures": model.config.temperatures,
        "exit_layers": model.config.exit_layers,
        "distances": model.prototypes is not None,
    }
    parts = ("encoder", "pooling", "heads", "router")
    modules = [getattr(model, name, None) for name in parts]
    return (
        json.dumps(settings, sort_keys=True, default=repr),
        tuple(None if module is None else module_kind(module) for module in modules),
    )


def _call_kind(call: Call, prepared: Prepared) -> Hashable:
    """How a layer is called: which tensors of the context it gets where, and what else."""
    number = {id(tensor): index for index, tensor in enumerate(call_tensors(prepared))}
    leaves, tree = pytree.tree_flatten((call.arguments, call.keywords))
    shown = [
        f"tensor {number[id(leaf)]}" if isinstance(leaf, Tensor) else repr(leaf)[:200]
        for leaf in leaves
    ]
    return str(tree), tuple(shown)


def let_halt(model: Model, prepared: Prepared, ids: Tensor) -> None:
    """Of a tagger, makes the last layer of each token a part of the context; at first the depth."""
    if TASKS[model.config.task].splits_words:
        prepared.token_layers = torch.full_like(ids, model.encoder.depth)


def call_tensors(prepared: Prepared) -> list[Tensor]:
    """The distinct tensors that the layers are called with, in order of first use.

    Those of a cascade are called with the text itself: its second model reads it from scratch.
    """
    leaves = pytree.tree_leaves(prepared.context)
    seen: dict[int, Tensor] = {}
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            seen.setdefault(id(leaf), leaf)
    return list(seen.values())


def context(prepared: Prepared, pool: Tensor) -> list[Tensor]:
    """Everything later stretches need: what their layers are called with, and pooling weights."""
    return [*call_tensors(prepared), pool]


def context_names(model: Model, count: int) -> list[str]:
    """A name for each tensor of the context."""
    names = [f"context_{index}" for index in range(count)]
    if TASKS[model.config.task].splits_words:
        names[-2] = "token_layers"  # the last one is what pooling reads
    return names


@torch.no_grad()
def context_axes(model: Model) -> list[Axes]:
    """Which axes of each context tensor run over rows and over tokens, found by trying two sizes.

    Raises:
        UsageError: an axis follows the text in another way, so rows could not be taken out.
    """
    sizes = ((2, 7), (3, 11))
    tried = []
    for rows, tokens in sizes:
        ids = torch.full((rows, tokens), 5)
        mask = torch.ones_like(ids)
        mask[0, -1] = 0  # unpadded batches get no mask at all
        prepared = model.encoder.prepare(ids, mask)
        let_halt(model, prepared, ids)
        weights = model.pooling.weights(mask, model.dtype)
        tried.append([tensor.shape for tensor in context(prepared, weights)])
    return [_axes(small, large, sizes) for small, large in zip(*tried, strict=True)]


def _axes(small: Sequence[int], large: Sequence[int], sizes: Any) -> Axes:
    (rows, tokens), (more_rows, more_tokens) = sizes
    axes: list[str | int] = []
    for first, second in zip(small, large, strict=True):
        if first == second:
            axes.append(int(first))
        elif (first, second) == (rows, more_rows):
            axes.append("rows")
        elif (first, second) == (tokens, more_tokens):
            axes.append("tokens")
        else:
            raise UsageError(
                "This encoder passes its layers a tensor whose size depends on the text in an "
                f"unknown way ({tuple(small)} for {tokens} tokens, {tuple(large)} for "
                f"{more_tokens}); it cannot be exported."
            )
    return tuple(axes)
