"""Reading weights and tokenizer for the torch back end, refusing anything incomplete."""

from __future__ import annotations

import torch

from de3bert.errors import UsageError
from de3bert.model.loading import read_model
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.model.word_encoder import WordEncoder
from de3bert.runtime.torch_backend import TorchBackend
from de3bert.runtime.torch_words import TorchWordBackend

__all__ = ["load_torch"]


def load_torch(source: str, device: str | None, threads: int | None = None) -> TorchBackend:
    """The back end of a model folder or hub id."""
    if threads is not None:
        if threads < 1:
            raise UsageError(f"threads must be at least 1, got {threads}.")
        torch.set_num_threads(threads)
    model = read_model(source)
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.nn.Module.to(model, place)  # the subclass's wrapper hides its signature
    tokenizer, limit = load_tokenizer(source), model.config.max_length
    if model.config.task == "words":
        return TorchWordBackend(model, WordEncoder(tokenizer, limit))
    encoder = TextEncoder(tokenizer, limit)
    return TorchBackend(model, encoder)
