"""Which modules outside this package a model has parts of."""

from __future__ import annotations

from de3bert.exits.family import Family
from de3bert.exits.signals.parse import SIGNALS
from de3bert.methods import METHODS
from de3bert.model.config import EarlyExitConfig
from de3bert.model.head import HEADS
from de3bert.model.pooling import POOLINGS
from de3bert.model.routers import ROUTERS
from de3bert.objective import LOSSES

__all__ = ["plugins_of"]


def plugins_of(config: EarlyExitConfig) -> list[str]:
    """The modules that registered the method of a model, its losses, signals and parts."""
    if config.method not in METHODS:  # whoever builds the model is told
        return []
    method = METHODS[config.method]
    signals = (Family.of(family).signal for family in method.families)
    found = {
        METHODS.origin(config.method),
        HEADS.origin(config.heads),
        POOLINGS.origin(config.pooling),
        ROUTERS.origin(config.router),
        *(LOSSES.origin(term.loss) for phase in method.phases for term in phase.terms),
        *(SIGNALS.origin(signal.name) for signal in signals if signal is not None),
    }
    return sorted(module for module in found if module)
