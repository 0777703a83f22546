"""Layers by torch: the model as trained, stopped between layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.encoder import Prepared
from de3bert.model.tokens import TextEncoder
from de3bert.runtime.engine import TokenRow

__all__ = ["TorchBackend"]


@dataclass
class State:
    """A batch between two layers."""

    inputs: dict[str, Tensor]  # (rows, tokens) each
    prepared: Prepared
    hidden: Tensor  # (rows, tokens, hidden)
    layer: int  # the last layer run; 0: only embedded


class TorchBackend:
    """Runs an `EarlyExitForSequenceClassification` layer by layer."""

    def __init__(self, model: EarlyExitForSequenceClassification, encoder: TextEncoder) -> None:
        self.model = model.eval()
        self.encoder = encoder
        self.exit_layers = tuple(model.config.exit_layers)
        self.classes = len(model.config.label_names)

    @torch.inference_mode()
    def start(self, rows: Sequence[TokenRow]) -> State:
        padded = self.encoder.pad(rows)
        inputs = {name: tensor.to(self.model.device) for name, tensor in padded.items()}
        prepared = self.model.encoder.prepare(**inputs)
        return State(inputs, prepared, prepared.embedded, 0)

    @torch.inference_mode()
    def advance(
        self, state: State, layer: int, *, read: bool, distances: bool
    ) -> tuple[State, NDArray[np.float32] | None, NDArray[np.float32] | None]:
        hidden = state.hidden
        for number in range(state.layer + 1, layer + 1):
            hidden = self.model.encoder.layer(state.prepared, number, hidden)
        state = State(state.inputs, state.prepared, hidden, layer)
        if not read:
            return state, None, None
        pooled = self.model.pooled(hidden, state.prepared.mask, layer)
        logits = self.model.classify(pooled, layer)
        far = self.model.distances(pooled, layer) if distances else None
        return state, _array(logits), None if far is None else _array(far)

    @torch.inference_mode()
    def keep(self, state: State, keep: NDArray[np.bool_]) -> State:
        index = torch.from_numpy(np.flatnonzero(keep)).to(state.hidden.device)
        mask = state.inputs["attention_mask"][index]
        longest = int(mask.sum(1).max())  # the rows that stay may need less padding
        inputs = {name: tensor[index, :longest] for name, tensor in state.inputs.items()}
        # Masks and position tables are the backbone's business: it is asked again for fewer rows.
        prepared = self.model.encoder.prepare(**inputs)
        return State(inputs, prepared, state.hidden[index, :longest], state.layer)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.float().cpu().numpy()
