"""How sure an exit is: formulas on arrays, the same on one row, and signals by name."""

from de3bert.exits.signals.formulas import (
    check_classes,
    cosine_distance,
    distance_ratio,
    edr,
    energy,
    entropy,
    max_probability,
    nearest_two,
    probabilities,
)
from de3bert.exits.signals.parse import Signal
from de3bert.exits.signals.registry import SIGNALS, SignalKind

__all__ = [
    "SIGNALS",
    "Signal",
    "SignalKind",
    "check_classes",
    "cosine_distance",
    "distance_ratio",
    "edr",
    "energy",
    "entropy",
    "max_probability",
    "nearest_two",
    "probabilities",
]
