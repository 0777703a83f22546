"""Does a number grow, or fall, with another? Spearman's rho over a handful of points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, Literal

import numpy as np

__all__ = ["rank_trend"]

LEAST = 3
EXACT = 8  # up to so many points all orders are counted: 8! = 40320
ROUNDING = 1e-9


def rank_trend(
    x: Sequence[float], y: Sequence[float], direction: Literal["grows", "falls"]
) -> dict[str, Any]:
    """Spearman's rho of x and y with a one-tailed p-value for the direction.

    Up to 8 points p is exact: the share of all orders of y with a rho at least as far in the
    direction. The usual approximation is far off for so few.

    Returns:
        rho, p, n, direction; rho and p are None, with a reason, where they are not defined.
    """
    found: dict[str, Any] = {"rho": None, "p": None, "n": len(x), "direction": direction}
    if len(x) < LEAST:
        return {**found, "reason": f"a trend needs at least {LEAST} points, there are {len(x)}"}
    if min(len(set(x)), len(set(y))) < 2:
        return {**found, "reason": "all values are equal"}
    from scipy.stats import spearmanr

    alternative = "greater" if direction == "grows" else "less"
    result = spearmanr(x, y, alternative=alternative)
    p = _exact(x, y, direction) if len(x) <= EXACT else float(result.pvalue)
    return {**found, "rho": float(result.statistic), "p": p}


def _exact(x: Sequence[float], y: Sequence[float], direction: str) -> float:
    """The share of orders of y whose ranks agree with those of x at least as well."""
    from scipy.stats import rankdata

    sign = 1.0 if direction == "grows" else -1.0
    mine, theirs = rankdata(x), sign * rankdata(y)
    agreement = np.asarray(list(permutations(theirs))) @ mine  # rho but for scale and shift
    return float((agreement >= mine @ theirs - ROUNDING).mean())
