"""The distance-aware regulariser (DAR): pulls every row towards the prototype of its class."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from de3bert.errors import UsageError
from de3bert.exits.signals.formulas import distance_ratio
from de3bert.objective.objective import LOSSES, ExitBatch
from de3bert.registry import Registry

__all__ = ["DAR_FORMS", "alienation", "center", "combined", "distance"]

# Each form: (distances (rows, exits, classes), labels (rows,), beta) -> (exits,).
Form = Callable[[Tensor, Tensor, float], Tensor]
DAR_FORMS: Registry[Form] = Registry("form of dar")


@DAR_FORMS.register("center")
def center(distances: Tensor, labels: Tensor, beta: float) -> Tensor:
    """DAR-C = mean over rows of dist(h', cp_y), (exits,)."""
    own = _own(distances, labels)
    return _mean(own, ~own.isnan())


@DAR_FORMS.register("alienation")
def alienation(distances: Tensor, labels: Tensor, beta: float) -> Tensor:
    """DAR-A = mean of 0.5 (1 + (r_y - r_z) / max(r_y, r_z)), r_z the nearest other class, (exits,).

    Classes without a prototype (NaN) cannot be the nearest; a row with no other class, or without
    a prototype of its own, is left out.
    """
    own = _own(distances, labels)
    is_own = torch.nn.functional.one_hot(labels, distances.shape[-1]).bool()[:, None, :]
    others = distances.masked_fill(is_own | distances.isnan(), float("inf"))
    nearest = others.amin(-1)  # (rows, exits)
    known = nearest.isfinite() & ~own.isnan()
    one = torch.ones_like(own)
    return _mean(distance_ratio(own.where(known, one), nearest.where(known, one)), known)


@DAR_FORMS.register("combined")
def combined(distances: Tensor, labels: Tensor, beta: float) -> Tensor:
    """DAR-CB = DAR-C + beta DAR-A, (exits,)."""
    return center(distances, labels, beta) + beta * alienation(distances, labels, beta)


@DAR_FORMS.register("none")
def none(distances: Tensor, labels: Tensor, beta: float) -> Tensor:
    """No regulariser; the prototypes are still tracked (the paper's "w/o DAR")."""
    return distances.new_zeros(distances.shape[1])


@LOSSES.register("distance")
def distance(batch: ExitBatch) -> Tensor:
    """The regulariser in the form that the option `dar` names, (exits - 1,)."""
    if batch.distances is None:
        raise UsageError(
            'The distance term needs prototypes, but this model has prototypes="none". '
            'Use prototypes="linear" or "identity", or the method joint-entropy.'
        )
    form = DAR_FORMS[str(batch.options["dar"])]
    return form(batch.distances, batch.labels, float(batch.options["beta"]))


def _own(distances: Tensor, labels: Tensor) -> Tensor:
    """The distance of every row to its own class, (rows, exits)."""
    index = labels[:, None, None].expand(-1, distances.shape[1], 1)
    return distances.gather(-1, index).squeeze(-1)


def _mean(values: Tensor, known: Tensor) -> Tensor:
    """Mean over the known rows, (exits,); 0 where there are none."""
    return values.where(known, torch.zeros_like(values)).sum(0) / known.sum(0).clamp_min(1)
