"""The prototypical network in closed form: a linear map that makes classes round, and their means.

The paper trains the map by gradient steps towards small distances to moving means. What it asks for
has a solution: in the space where the covariance within classes is the identity, the direction to a
class mean is the most telling one, and cosine distances measure it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.fitting.moments import ClassMoments

__all__ = ["Whitening", "ledoit_wolf", "whitening_of"]

Floats = NDArray[np.float64]
LEAST = 1e-6  # of the mean eigenvalue: what is flatter is rounding


@dataclass(frozen=True, eq=False)
class Whitening:
    """h' = weight s + bias, and the prototypes of all classes in that space.

    Attributes:
        weight: (hidden, hidden).
        bias: (hidden,).
        prototypes: (classes, hidden).
        shrinkage: how far the covariance was drawn towards a round one, from 0 to 1.
        mass: rows per class, (classes,).
    """

    weight: Floats
    bias: Floats
    prototypes: Floats
    shrinkage: float
    mass: Floats


def whitening_of(found: ClassMoments, *, shrinkage: float | None = None) -> Whitening:
    """The map and the prototypes of one exit, from the moments of its rows.

        W = S^(-1/2) D^(-1),    b = -W c,    p_k = W (mean_k - c)

    S is the covariance within classes of the vectors in units of their standard deviations D,
    shrunk as (1 - a) S + a mu I with mu its mean eigenvalue; c is the mean of the class means, so
    that no class is the middle of the space because it is common.

    Args:
        shrinkage: a; None takes that of Ledoit and Wolf (2004).
    """
    amount = ledoit_wolf(found) if shrinkage is None else shrinkage
    root = _inverse_root(found.within, amount)
    middle = found.means.mean(axis=0)
    weight = root / found.scale
    centre = found.centre + middle * found.scale
    return Whitening(
        weight=weight,
        bias=-weight @ centre,
        prototypes=(found.means - middle) @ root.T,
        shrinkage=amount,
        mass=found.mass,
    )


def ledoit_wolf(moments: ClassMoments) -> float:
    """How much to shrink: expected squared error of S over its squared distance from mu I.

    a = min(1, [ mean |x|^4 - |S|^2 ] / N / |S - mu I|^2 ),   x around its class mean
    """
    cov = moments.within
    hidden = len(cov)
    size = float(np.square(cov).sum())
    away = size - float(np.trace(cov)) ** 2 / hidden
    noise = (moments.fourth - size) / moments.rows
    if away <= 0:
        return 1.0
    return float(np.clip(noise / away, 0.0, 1.0))


def _inverse_root(cov: Floats, shrinkage: float) -> Floats:
    """S^(-1/2) of the shrunk covariance, symmetric; what has no spread at all stays finite."""
    hidden = len(cov)
    level = float(np.trace(cov)) / hidden
    if level <= 0:  # all rows of a class are the same
        return np.eye(hidden)
    values, axes = np.linalg.eigh(cov)
    spread = (1.0 - shrinkage) * np.maximum(values, 0.0) + shrinkage * level
    spread = np.maximum(spread, LEAST * level)
    root: Floats = (axes / np.sqrt(spread)) @ axes.T
    return root
