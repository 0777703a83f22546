"""Reading weights and tokenizer for the torch back end, refusing anything incomplete."""

from __future__ import annotations

import torch

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitModel
from de3bert.model.building import fitting_length
from de3bert.model.loading import read_model
from de3bert.model.tokens import load_tokenizer
from de3bert.model.word_encoder import encoder_of
from de3bert.printable import printable
from de3bert.runtime.threads import check_threads
from de3bert.runtime.torch_backend import TorchBackend

__all__ = ["load_torch"]


def load_torch(
    source: str, device: str | None, threads: int | None = None, dtype: str | None = None
) -> TorchBackend:
    """The back end of a model folder, by default in the precision of its weights."""
    chosen, wanted = _device(device), check_threads(threads)
    model = read_model(source, dtype)
    _check_length(model, source)
    tokenizer, limit = load_tokenizer(source), model.config.max_length
    torch.nn.Module.to(model, chosen)  # the subclass's wrapper hides its signature
    if wanted is not None:
        torch.set_num_threads(wanted)
    return TorchBackend(model, encoder_of(model.config.task, tokenizer, limit))


def _device(device: str | None) -> torch.device:
    """The device asked for, if this machine has it and it can hand numbers back."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.ones(1, device=chosen).cpu()
    except Exception as error:  # torch has a kind of error for every way of not having a device
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        here = ["cpu"] + ["cuda"] * torch.cuda.is_available()
        raise UsageError(
            f'There is no device "{printable(device)}" here ({reason}). Available: '
            f"{', '.join(here)}."
        ) from error
    return chosen


def _check_length(model: EarlyExitModel, source: str) -> None:
    """De3Error when the config lets texts be longer than the encoder has positions."""
    config = model.config
    longest = fitting_length(config.max_length, *config.encoder_configs)
    if longest < config.max_length:
        raise De3Error(
            f"The config of {source} is damaged: max_length is {config.max_length}, but the "
            f"encoder has positions for {longest} tokens."
        )
