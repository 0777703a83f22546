"""Layers by torch: the model as trained, stopped between layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from de3bert.data.tokens import TokenRow
from de3bert.exits.token_layers import TokenLayers
from de3bert.model import EarlyExitModel
from de3bert.model.encoder import Prepared
from de3bert.model.failures import failures_told
from de3bert.model.tokens import TextEncoder
from de3bert.model.words import first_pieces, word_states
from de3bert.runtime.model_info import ModelInfo

__all__ = ["TorchBackend", "by_torch"]

Work = TypeVar("Work", bound=Callable[..., Any])


def by_torch(work: Work) -> Work:
    """Runs a step without gradients; whatever fails in it is a De3Error."""

    @functools.wraps(work)
    def told(*given: Any, **named: Any) -> Any:
        with torch.inference_mode(), failures_told():
            return work(*given, **named)

    return cast(Work, told)


@dataclass
class TorchState:
    """A batch between two layers."""

    inputs: dict[str, Tensor]  # (rows, tokens) each; `word_ids` among them where units are words
    prepared: Prepared
    hidden: Tensor  # (rows, tokens, hidden)
    layer: int  # the last layer run; 0: only embedded
    pooled: Tensor | None = None  # (units, hidden), what the exit at `layer` reads
    memory: Tensor | None = None  # (units, exits so far, hidden), for heads that look back


class TorchBackend:
    """Runs an `EarlyExitModel` layer by layer."""

    def __init__(self, model: EarlyExitModel, encoder: TextEncoder) -> None:
        self.model = model.eval()
        self.encoder = encoder
        self.info = ModelInfo.of(model.config.to_dict())
        self.exit_layers = self.info.exit_layers
        self.classes = len(self.info.label_names)
        self.has_prototypes = model.prototypes is not None
        self.has_router = model.router is not None

    @property
    def prototypes_unset(self) -> tuple[str, ...]:
        if self.model.prototypes is None:
            return ()
        done = self.model.prototypes.initialised.tolist()
        return tuple(n for n, seen in zip(self.info.label_names, done, strict=True) if not seen)

    @property
    def token_layers(self) -> TokenLayers | None:
        """Where single tokens stop, if they do."""
        table = self.model.encoder.token_exits
        return None if table is None else table.arrays()

    def size(self) -> dict[str, Any]:
        total = sum(parameter.numel() for parameter in self.model.parameters())
        added = self.model.exit_parameters()
        share = sum(added.values()) / (total - sum(added.values()))
        return {
            "parameters": total,
            "exit_parameters": added,
            "exit_parameter_share": round(share, 6),
        }

    @by_torch
    def start(self, rows: Sequence[TokenRow]) -> TorchState:
        padded = self.encoder.pad(rows)
        inputs = {name: tensor.to(self.model.device) for name, tensor in padded.items()}
        prepared = self.model.encoder.prepare(**inputs)
        return TorchState(inputs, prepared, prepared.embedded, 0)

    @by_torch
    def advance(
        self, state: TorchState, layer: int, *, read: bool
    ) -> tuple[TorchState, NDArray[np.float32] | None]:
        hidden = state.hidden
        for number in range(state.layer + 1, layer + 1):
            hidden = self.model.encoder.layer(state.prepared, number, hidden)
        looks_back = self.model.heads.keeps_memory
        if not read and not looks_back:
            return TorchState(state.inputs, state.prepared, hidden, layer), None
        seen, mask = hidden, state.prepared.mask
        if "word_ids" in state.inputs:
            seen, mask = word_states(hidden, state.inputs["word_ids"])
        pooled, logits = self.model.read(seen, mask, layer, state.memory)
        memory = None
        if looks_back:
            own = pooled.unsqueeze(1)
            memory = own if state.memory is None else torch.cat([state.memory, own], 1)
        after = TorchState(state.inputs, state.prepared, hidden, layer, pooled, memory)
        return after, _array(logits) if read else None

    @by_torch
    def distances(self, state: TorchState, layer: int) -> NDArray[np.float32]:
        assert state.pooled is not None  # the exit was read
        return _array(self.model.distances(state.pooled, layer))

    @by_torch
    def certainty(self, state: TorchState, layer: int) -> NDArray[np.float32]:
        assert state.pooled is not None  # the exit was read
        return _array(self.model.certainty(state.pooled, layer))

    @by_torch
    def keep(self, state: TorchState, keep: NDArray[np.bool_]) -> TorchState:
        index = torch.from_numpy(np.flatnonzero(keep)).to(state.hidden.device)
        mask = state.inputs["attention_mask"][index]
        longest = int(mask.sum(1).max())  # the rows that stay may need less padding
        inputs = {name: tensor[index, :longest] for name, tensor in state.inputs.items()}
        # Masks and position tables are the backbone's business: it is asked again for fewer rows.
        prepared = self.model.encoder.prepare(**inputs)
        memory = None if state.memory is None else state.memory[index]
        hidden = state.hidden[index, :longest]
        if (limits := state.prepared.token_layers) is not None:  # what has halted stays halted
            prepared.token_layers = limits[index, :longest]
        return TorchState(inputs, prepared, hidden, state.layer, memory=memory)

    @by_torch
    def halt(self, state: TorchState, done: NDArray[np.bool_]) -> TorchState:
        ids = state.inputs["word_ids"]
        limits = state.prepared.token_layers
        if limits is None:
            limits = torch.full_like(ids, self.exit_layers[-1])
        # All pieces of a word halt together: each takes over what its word's first piece says.
        number = first_pieces(ids).flatten().cumsum(0).view_as(ids) - 1
        halted = torch.from_numpy(done).to(ids.device)[number.clamp_min(0)] & (ids > 0)
        state.prepared.token_layers = torch.where(halted, limits.clamp_max(state.layer), limits)
        return state


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.float().cpu().numpy()
