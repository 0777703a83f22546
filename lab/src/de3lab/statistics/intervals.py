"""Means with their spread, correlations, and 95 % intervals of both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "described",
    "difference_interval",
    "pearson",
    "percentile_interval",
    "pooled_sd",
    "share_difference_reach",
    "spearman",
    "spearman_interval",
    "student_interval",
    "summary",
]

Floats: TypeAlias = NDArray[np.float64]
CONFIDENCE = 0.95
NORMAL = 1.959964  # the 97.5 % point of the normal distribution
ONE = 1 - 1e-12  # correlations beyond are 1


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Mean, sample deviation (None for one value) and count."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "sd": spread, "n": len(values)}


def described(values: Sequence[float]) -> dict[str, Any]:
    """The summary and the values themselves."""
    return {**summary(values), "values": [float(value) for value in values]}


def student_interval(
    values: Sequence[float], level: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Student's interval of the mean, mean +- t sd / sqrt(n); None for fewer than two values."""
    if len(values) < 2:
        return None
    from scipy.stats import t

    mean = float(np.mean(values))
    reach = float(t.ppf((1 + level) / 2, len(values) - 1) * np.std(values, ddof=1))
    reach /= math.sqrt(len(values))
    return mean - reach, mean + reach


def percentile_interval(values: Floats, level: float = CONFIDENCE) -> tuple[float, float]:
    """The middle of resampled values, (resamples,) -> low, high; NaN does not count."""
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def pooled_sd(groups: Sequence[Sequence[float]]) -> float | None:
    """sqrt(sum of squared deviations from each group's mean / degrees of freedom).

    The spread between runs of one kind. None where every group has one value.
    """
    freedom = sum(len(group) - 1 for group in groups)
    if freedom == 0:
        return None
    squares = sum(float(((np.asarray(group) - np.mean(group)) ** 2).sum()) for group in groups)
    return math.sqrt(squares / freedom)


def share_difference_reach(first: float, second: float, rows: int) -> float:
    """1.96 standard errors of the difference of two shares, as if of different rows."""
    variance = (first * (1 - first) + second * (1 - second)) / rows
    return 1.96 * math.sqrt(variance)


def difference_interval(
    first: Mapping[str, float], second: Mapping[str, float]
) -> tuple[float, float]:
    """95 % interval of first - second from the interval of each (Zou, 2007), taken as independent.

    Each has a mean, low and high. Models on the same rows agree in part, which makes the true
    interval rather narrower than this one.
    """
    middle = first["mean"] - second["mean"]
    down = math.hypot(first["mean"] - first["low"], second["high"] - second["mean"])
    up = math.hypot(first["high"] - first["mean"], second["mean"] - second["low"])
    return middle - down, middle + up


def pearson(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Pearson's r as `value`, with its interval by Fisher's z as `low` and `high`."""
    from scipy.stats import pearsonr

    found = pearsonr(first, second)
    low, high = found.confidence_interval(CONFIDENCE)
    return {"value": float(found.statistic), "low": float(low), "high": float(high)}


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Spearman's rho of two columns, (n,), (n,); None where one of them is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)


def spearman_interval(rho: float, rows: int) -> tuple[float, float]:
    """95 % interval of a Spearman correlation by Fisher's z, with Bonett and Wright's variance.

    tanh(atanh rho -+ 1.96 sqrt((1 + rho^2 / 2) / (rows - 3)))
    """
    if abs(rho) > ONE:
        return rho, rho
    reach = NORMAL * math.sqrt((1 + rho**2 / 2) / (rows - 3))
    middle = math.atanh(rho)
    return math.tanh(middle - reach), math.tanh(middle + reach)
