"""The trained model without our machinery: what one would run had it never got exits.

Imports torch; loaded only when a contender needs it.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel

from de3bert.errors import De3Error
from de3bert.model import EarlyExitModel
from de3bert.model.heads import Reading
from de3bert.model.pretrained import from_config
from de3bert.tasks import TASKS

__all__ = ["FirstLayers", "PlainClassifier", "genuine_backbone", "write_plain_graph"]

Model = EarlyExitModel


class PlainClassifier(nn.Module):
    """A genuine backbone, the last exit's pooling and its classifier; nothing stops."""

    def __init__(self, trained: Model) -> None:
        super().__init__()
        self.backbone = genuine_backbone(trained)
        self.trained = trained

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Logits, (rows, classes), or of a tagger (rows, tokens, classes)."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        trained, mask = self.trained, attention_mask
        layers = trained.config.exit_layers
        if not trained.heads.keeps_memory:
            return _classified(trained, self.backbone(**inputs)[0], mask, layers[-1])
        # Heads that look back read every exit's vector, whether anybody leaves there or not.
        output = self.backbone(**inputs, output_hidden_states=True)
        before = [
            trained.pooling(trained.encoder.readable(output.hidden_states[m]), mask, index)
            for index, m in enumerate(layers[:-1])
        ]
        return _classified(trained, output[0], mask, layers[-1], before)


class FirstLayers(nn.Module):
    """The first `layers` layers and the exit behind them: what a student of that depth costs."""

    def __init__(self, trained: Model, layers: int) -> None:
        super().__init__()
        self.trained = trained
        self.layers = layers

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Logits, (rows, classes), or of a tagger (rows, tokens, classes)."""
        encoder = self.trained.encoder
        prepared = encoder.prepare(input_ids, attention_mask, token_type_ids=token_type_ids)
        hidden, before = prepared.embedded, []
        for number in range(1, self.layers + 1):
            hidden = encoder.layer(prepared, number, hidden)
            looks_back = self.trained.heads.keeps_memory and number < self.layers
            if looks_back and number in self.trained.config.exit_layers:
                index = self.trained.exit_index(number)
                before.append(self.trained.pooling(encoder.readable(hidden), attention_mask, index))
        states = encoder.readable(hidden, self.layers)
        return _classified(self.trained, states, attention_mask, self.layers, before)


def _classified(
    trained: Model, states: Tensor, mask: Tensor, layer: int, before: Sequence[Tensor] = ()
) -> Tensor:
    """Logits of the exit at `layer`, given its readable states and the vectors before it."""
    pooled = states  # a word is its first token, there is nothing to pool
    if not TASKS[trained.config.task].splits_words:
        pooled = trained.pooling(states, mask, trained.exit_index(layer))
    memory = torch.stack(list(before), 1) if before else None
    return trained.classify(Reading(pooled, memory, states, mask), layer)


def genuine_backbone(trained: Model) -> PreTrainedModel:
    """The library's own encoder with the trained weights, its layers back in their place."""
    # A copy, so that the attention chosen for one model is not that of the other.
    backbone: PreTrainedModel = from_config(AutoModel, copy.deepcopy(trained.config.encoder_config))
    if hasattr(backbone, "pooler"):
        backbone.pooler = None  # type: ignore[assignment]  # pooling is the exit's
    stack = trained.encoder.layout.stack
    layers = trained.encoder.layers.state_dict()
    state = {f"{stack}.{name}": tensor for name, tensor in layers.items()}
    state |= trained.encoder.backbone.state_dict()
    found = backbone.load_state_dict(state, strict=False, assign=True)
    strange = [*found.missing_keys, *found.unexpected_keys]
    if strange:
        raise De3Error(
            f"The weights do not fit a plain {type(backbone).__name__}: {len(strange)} tensors are "
            f"missing or unexpected, the first is {strange[0]}."
        )
    return backbone.eval().requires_grad_(False)


def write_plain_graph(module: nn.Module, inputs: Mapping[str, Tensor], path: Path) -> None:
    """The module in one graph, as torch's exporter gives it, with dynamic rows and tokens."""
    axes = {0: torch.export.Dim("rows"), 1: torch.export.Dim("tokens")}
    logger = logging.getLogger("torch.onnx")  # it warns of optional packages that are not there
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module.eval(),
                tuple(inputs.values()),
                dynamo=True,
                dynamic_shapes=(axes,) * len(inputs),
                input_names=list(inputs),
                output_names=["logits"],
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    assert program is not None  # None only when a file is written
    program.save(path)
