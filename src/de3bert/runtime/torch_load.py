"""Reading weights and tokenizer for the torch back end, refusing anything incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitForSequenceClassification
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
    model = _read_model(source)
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.nn.Module.to(model, place)  # the subclass's wrapper hides its signature
    tokenizer, limit = load_tokenizer(source), model.config.max_length
    if model.config.task == "words":
        return TorchWordBackend(model, WordEncoder(tokenizer, limit))
    encoder = TextEncoder(tokenizer, limit)
    return TorchBackend(model, encoder)


def _read_model(source: str) -> EarlyExitForSequenceClassification:
    local = Path(source).exists()
    try:
        loaded: Any = EarlyExitForSequenceClassification.from_pretrained(
            source, output_loading_info=True
        )
    except De3Error:
        raise
    except Exception as error:  # safetensors, json and hub errors have no common base
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if local:
            raise De3Error(f"The model in {source} is damaged or incomplete: {reason}") from error
        raise UsageError(
            f'No model "{source}": it is neither a folder nor a model that could be fetched from '
            f"the hub ({reason})."
        ) from error
    model: EarlyExitForSequenceClassification = loaded[0]
    missing = sorted(loaded[1]["missing_keys"])
    if missing:
        raise De3Error(
            f"The weights in {source} are incomplete: {len(missing)} tensors are missing, "
            f"the first is {missing[0]}."
        )
    return model
