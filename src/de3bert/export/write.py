"""The files of a bundle: one graph per stretch of layers, one per distance test, the tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from de3bert.export.graphs import ROWS, TOKENS, make_graph
from de3bert.export.segments import (
    Axes,
    Distances,
    Model,
    Segment,
    Start,
    context,
    context_axes,
    context_names,
    let_halt,
    program_kind,
    stretches,
)
from de3bert.export.templates import Asked, Templates, module_kind
from de3bert.files import write_text
from de3bert.model.encoder import Encoder
from de3bert.model.tokens import TextEncoder
from de3bert.runtime.manifest import Graph
from de3bert.tasks import TASKS

__all__ = ["GraphWriter", "write_tokenizer"]

READS = ("input_ids", "attention_mask", "token_type_ids")


class GraphWriter:
    """Traces the parts of one model and writes them as graphs.

    Args:
        templates: whether graphs that differ in their weights alone are traced once.
    """

    def __init__(self, model: Model, encoder: TextEncoder, *, templates: bool = True) -> None:
        self.model = model
        # Two inputs of different length, so that the traced batch has padding in it.
        examples = TASKS[model.config.task].samples[0][1:3]
        rows = encoder.pad(encoder(examples).rows)
        # A tokenizer may give more than the backbone takes, and not all that it could take.
        taken = [name for name in READS if name in rows and name in model.encoder.accepted]
        self.inputs = {name: rows[name] for name in taken}
        self.axes = context_axes(model)
        self.prepared = model.encoder.prepare(**self.inputs)
        let_halt(model, self.prepared, self.inputs["input_ids"])
        pool = model.pooling.weights(self.inputs["attention_mask"], model.dtype)
        self.context = context(self.prepared, pool)
        self.names = context_names(model, len(self.axes))
        self.templates = Templates(program_kind(model), templates)

    @torch.no_grad()
    def write(self, folder: Path, layers: tuple[int, ...]) -> tuple[Graph, ...]:
        """All graphs of a bundle with exits at `layers`."""
        for left_over in folder.glob("*.onnx"):
            left_over.unlink()
        if self.model.encoder.token_exits is not None:
            self.model.encoder.token_exits.arrays().save(folder)
        return tuple(self._stretch(folder, *ends) for ends in stretches(layers))

    def start(self, last: int, module: Start | None = None) -> ir.Model:
        """Embeddings and layers 1 to `last`."""
        own = module or Start(self.model, 1, last)
        shapes = [{0: ROWS, 1: TOKENS}] * len(self.inputs)
        outputs = own.outputs + ([] if own.final else self.names)
        given = list(self.inputs.values())
        if module is not None:  # somebody else's, which may compute more than a start
            return make_graph(module, given, shapes, list(self.inputs), outputs)
        asked = Asked(own, given, shapes, list(self.inputs), outputs)
        return self.templates.make(asked, ("start", last, tuple(outputs)), self._weights())

    def _stretch(self, folder: Path, first: int, last: int) -> Graph:
        file, distances = f"layers-{first:02d}-{last:02d}.onnx", None
        ir.save(self.start(last) if first == 1 else self._segment(first, last), folder / file)
        if self.model.prototypes is not None and last != self.model.encoder.depth:
            distances = f"distances-{last:02d}.onnx"
            ir.save(self._distances(last), folder / distances)
        return Graph(first=first, last=last, file=file, distances=distances)

    def _segment(self, first: int, last: int) -> ir.Model:
        module = Segment(self.model, first, last)
        shapes = [{0: ROWS, 1: TOKENS}, [_dynamic(axes) for axes in self.axes]]
        hidden = self.prepared.embedded
        names, given = ["hidden", *self.names], [hidden, self.context]
        if module.takes_memory:
            before = sum(layer < first for layer in self.model.config.exit_layers)
            given.append(torch.zeros(len(hidden), before, hidden.shape[-1]))
            names, shapes = [*names, "memory"], [*shapes, {0: ROWS}]
        asked = Asked(module, given, shapes, names, module.outputs)
        if type(self.model.encoder) is not Encoder:  # a cascade: no two stretches of it are alike
            return self.templates.make(asked, ("cascade", first, last), self._weights())
        kind, roles = module.kind(self.prepared), module.roles(self.prepared)
        return self.templates.make(asked, kind, roles)

    def _weights(self) -> dict[str, torch.Tensor]:
        """All weights, each in a role of its own."""
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}

    def _distances(self, layer: int) -> ir.Model:
        pooled = torch.zeros(2, self.model.config.hidden_size)
        module = Distances(self.model, layer)
        asked = Asked(module, [pooled], [{0: ROWS}], ["pooled"], ["distances"])
        roles = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return self.templates.make(asked, module_kind(module), roles)


def _dynamic(axes: Axes) -> dict[int, Any]:
    """The dynamic axes of one input, by what they run over."""
    dims = {"rows": ROWS, "tokens": TOKENS}
    return {index: dims[axis] for index, axis in enumerate(axes) if isinstance(axis, str)}


def write_tokenizer(encoder: TextEncoder, folder: Path) -> dict[str, int]:
    """Writes tokenizer.json as the model uses it, and returns the filler of each input."""
    tokenizer = encoder.tokenizer
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(encoder.max_length, direction=tokenizer.truncation_side)
    write_text(folder / "tokenizer.json", backend.to_str(pretty=False))
    return {
        "input_ids": int(tokenizer.pad_token_id or 0),
        "token_type_ids": int(tokenizer.pad_token_type_id),
    }
