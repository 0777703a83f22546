"""Losses over exits. Importing this registers all of them."""

from de3bert.objective import cross_entropy, distance
from de3bert.objective.objective import LOSSES, ExitBatch, Objective, exit_weights

__all__ = ["LOSSES", "ExitBatch", "Objective", "cross_entropy", "distance", "exit_weights"]
