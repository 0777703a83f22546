"""Losses over exits. Importing this registers all of them."""

from importlib import import_module
from pkgutil import iter_modules

from de3bert.objective.objective import (
    LOSSES,
    Clock,
    ExitBatch,
    Objective,
    StatefulLoss,
    exit_weights,
)

__all__ = ["LOSSES", "Clock", "ExitBatch", "Objective", "StatefulLoss", "exit_weights"]

for _module in iter_modules(__path__):  # every file in this folder registers a loss or a few
    import_module(f"{__name__}.{_module.name}")
