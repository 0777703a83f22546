"""Layers by torch for models of words: exits read words, halted words keep their states."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from de3bert.model.word_encoder import WordEncoder
from de3bert.model.words import first_pieces, word_states
from de3bert.runtime.torch_backend import State, TorchBackend, by_torch

__all__ = ["TorchWordBackend"]


class TorchWordBackend(TorchBackend):
    """Runs a model of words layer by layer. Its rows are sentences, its outputs words."""

    encoder: WordEncoder

    @by_torch
    def advance(
        self, state: State, layer: int, *, read: bool
    ) -> tuple[State, NDArray[np.float32] | None]:
        hidden = state.hidden
        for number in range(state.layer + 1, layer + 1):
            hidden = self.model.encoder.layer(state.prepared, number, hidden)
        if not read:
            return State(state.inputs, state.prepared, hidden, layer), None
        seen, mask = word_states(hidden, state.inputs["word_ids"])
        pooled, logits = self.model.read(seen, mask, layer)
        after = State(state.inputs, state.prepared, hidden, layer, pooled)
        return after, logits.float().cpu().numpy()

    @by_torch
    def halt(self, state: State, done: NDArray[np.bool_]) -> State:
        ids = state.inputs["word_ids"]
        limits = state.prepared.token_layers
        if limits is None:
            limits = torch.full_like(ids, self.exit_layers[-1])
        # All pieces of a word halt together: each takes over what its word's first piece says.
        number = first_pieces(ids).flatten().cumsum(0).view_as(ids) - 1
        halted = torch.from_numpy(done).to(ids.device)[number.clamp_min(0)] & (ids > 0)
        state.prepared.token_layers = torch.where(halted, limits.clamp_max(state.layer), limits)
        return state

    @by_torch
    def keep(self, state: State, keep: NDArray[np.bool_]) -> State:
        after = super().keep(state, keep)
        if state.prepared.token_layers is not None:
            index = torch.from_numpy(np.flatnonzero(keep)).to(after.hidden.device)
            width = after.hidden.shape[1]
            after.prepared.token_layers = state.prepared.token_layers[index, :width]
        return after
