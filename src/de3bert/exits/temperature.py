"""Temperatures: one number per exit that makes its probabilities mean what they say."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.trace import Trace

__all__ = ["HIGHEST", "LOWEST", "fit_temperatures"]

LOWEST, HIGHEST = 0.05, 20.0  # no exit needs more; an exit without a mistake would ask for 0


def fit_temperatures(trace: Trace) -> tuple[float, ...]:
    """The temperature of each exit, the final one included, that fits a labelled trace best.

    T_m = argmin over T in [0.05, 20] of the mean of -log softmax(z_m / T)_y. The classes an exit
    predicts do not change, only how sure it is of them. Fit on calibration rows: an exit that is
    always right on these rows gets the lowest temperature there is.

    Example:
        >>> calm = trace.tempered(fit_temperatures(trace))
    """
    labels = trace.known_labels
    return tuple(_fit(_margins(trace.logits[:, number], labels)) for number in range(trace.exits))


def _fit(margins: NDArray[np.float64]) -> float:
    from scipy.optimize import minimize_scalar  # here, because importing scipy is slow

    # Convex in 1/T, so there is one valley. The search never tries the ends themselves; where it
    # comes out no better than no temperature at all, there is none.
    found = minimize_scalar(
        lambda size: _loss(margins, math.exp(size)),
        bounds=(math.log(LOWEST), math.log(HIGHEST)),
        method="bounded",
    )
    tried = (1.0, LOWEST, math.exp(found.x), HIGHEST)
    return min(tried, key=lambda temperature: _loss(margins, temperature))


def _loss(margins: NDArray[np.float64], temperature: float) -> float:
    """The mean over rows of log(1 + sum over k != y of exp((z_k - z_y) / T)).

    This is the usual negative log-likelihood, in a form that still tells a sure row from a surer
    one when its probability is 1 to the last bit.
    """
    others = np.logaddexp.reduce(margins / temperature, axis=-1)
    return float(np.logaddexp(0.0, others).mean())


def _margins(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """z_k - z_y of each class, -inf at the true one. (rows, classes) -> (rows, classes)"""
    exact = logits.astype(np.float64)
    rows = np.arange(len(labels))
    margins = exact - exact[rows, labels][:, None]
    margins[rows, labels] = -np.inf
    return margins
