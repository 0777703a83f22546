"""Steps after training that look at calibration rows only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from de3bert.exits import Trace
from de3bert.model import EarlyExitModel
from de3bert.model.tokens import TextEncoder
from de3bert.registry import Registry
from de3bert.training.inference import exit_logits
from de3bert.training.rows import Rows

__all__ = ["FINISHES"]

Finish = Callable[[EarlyExitModel, Rows, TextEncoder], None]
FINISHES: Registry[Finish] = Registry("step after training")


@FINISHES.register("temperatures")
def temperatures(model: EarlyExitModel, held: Rows, encoder: TextEncoder) -> None:
    """One temperature per exit that makes its probabilities fit the calibration rows best."""
    from de3bert.exits.temperature import fit_temperatures

    model.config.temperatures = None
    trace = Trace(
        logits=exit_logits(model, held, encoder).numpy(),
        distances=None,
        labels=np.array([row["labels"] for row in held.rows]),
        tokens=np.array(held.lengths),
        exit_layers=tuple(model.config.exit_layers or ()),
        label_names=model.config.label_names,
    )
    model.config.temperatures = [float(value) for value in fit_temperatures(trace)]
