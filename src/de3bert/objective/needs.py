"""What a loss asks of a batch and of its options; where it is missing, an error that says so."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.objective.objective import ExitBatch
from de3bert.registry import unknown

__all__ = ["certainty", "extra", "internal_exits", "number", "states", "whole_number", "word"]


def certainty(batch: ExitBatch, loss: str) -> Tensor:
    """The router's certainty in float32, (rows, exits - 1)."""
    if batch.certainty is None:
        raise UsageError(
            f'The loss "{loss}" needs a router, but this model has router="none". '
            "Use a method that declares one, or leave this loss out of its terms."
        )
    return batch.certainty.float()


def states(batch: ExitBatch, loss: str) -> Tensor:
    """The vectors that the exits read, in float32, (rows, exits, hidden)."""
    if batch.states is None:
        raise UsageError(
            f'The loss "{loss}" needs the vectors that the exits read, but the batch has none. '
            "Give them as ExitBatch(states=...), (rows, exits, hidden)."
        )
    return batch.states.float()


def extra(batch: ExitBatch, name: str, loss: str, meaning: str) -> Tensor:
    """What was prepared per row under `name`; `meaning` is its shape and content in words."""
    if name not in batch.extras:
        had = ", ".join(sorted(batch.extras)) or "none"
        raise UsageError(
            f'The loss "{loss}" needs "{name}": {meaning}. The batch has these extras: {had}. '
            f'Prepare it before the phase and give it as ExitBatch(extras={{"{name}": ...}}).'
        )
    return batch.extras[name]


def internal_exits(batch: ExitBatch, loss: str) -> int:
    """The number of exits before the last one, which must be at least 1."""
    internal = batch.exit_logits.shape[1] - 1
    if internal < 1:
        raise UsageError(
            f'The loss "{loss}" needs an exit before the last layer, but this model has only one '
            "exit. Name more in exit_layers."
        )
    return internal


def number(
    options: Mapping[str, OptionValue], name: str, default: float, *, positive: bool = False
) -> float:
    """A finite number that is not negative (with `positive`, not 0 either)."""
    value = float(options.get(name, default))
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        accepted = "above 0" if positive else "at least 0"
        raise UsageError(f"Option {name} must be a number {accepted}, got {value:g}.")
    return value


def whole_number(options: Mapping[str, OptionValue], name: str, default: int, least: int) -> int:
    """A whole number not below `least`."""
    value = float(options.get(name, default))
    if value != math.floor(value) or value < least:
        raise UsageError(f"Option {name} must be a whole number from {least} on, got {value:g}.")
    return int(value)


def word(options: Mapping[str, OptionValue], name: str, accepted: tuple[str, ...]) -> str:
    """One of the accepted words; the first is the default."""
    value = str(options.get(name, accepted[0]))
    if value not in accepted:
        raise UsageError(unknown(f"value of option {name}", value, accepted))
    return value
