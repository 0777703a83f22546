"""Tests over few pairs, correction for many of them, trends and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

__all__ = [
    "SIGNIFICANCE",
    "holm",
    "one_sample_test",
    "paired_test",
    "range_test",
    "rank_trend",
    "ranks",
]

Name = TypeVar("Name", str, tuple[str, str])
Tails = Literal["one", "two"]

SIGNIFICANCE = 0.05
NO_SPREAD = 1e-12  # values that vary less are one and the same number
LEAST = 3  # points of a trend
EXACT = 8  # up to so many points all orders are counted: 8! = 40320


def one_sample_test(values: Sequence[float], tails: Tails = "one") -> dict[str, Any] | None:
    """A t-test of the mean: n, mean, sd, t, p; None where nothing varies.

    With one tail p is how often a mean of 0 would give a t as high as this one; it is not how
    likely the mean is above 0. With two, how often it would give one as far from 0.
    """
    seen = np.asarray(values, dtype=np.float64)
    if float(seen.std(ddof=1)) < NO_SPREAD:
        return None
    from scipy.stats import ttest_1samp

    result = ttest_1samp(seen, 0.0, alternative="greater" if tails == "one" else "two-sided")
    return {
        "n": len(seen),
        "mean": float(seen.mean()),
        "sd": float(seen.std(ddof=1)),
        "t": float(result.statistic),
        "p": float(result.pvalue),
    }


def paired_test(
    ours: Sequence[float], theirs: Sequence[float], unit: str, tails: Tails = "one"
) -> dict[str, Any]:
    """A paired t-test with the effect size d_z = mean / sd.

    With one tail it asks whether ours is higher, with two whether there is any difference.

    Args:
        ours: one value per pair, (n,); likewise `theirs`, in the same order.
        unit: what the pairs are ("seeds", "tasks"), for the reason when there is no test.

    Returns:
        difference, n, p, t, dz; p, t and dz are None, with a reason, when they are not defined.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    count = len(differences)
    mean = float(differences.mean()) if count else None
    nothing: dict[str, Any] = {"n": count, "difference": mean, "p": None, "t": None, "dz": None}
    if count < 2:
        return {**nothing, "reason": f"a test needs at least 2 {unit}, there are {count}"}
    test = one_sample_test(differences.tolist(), tails)
    if test is None:
        return {**nothing, "reason": f"the difference is the same for all {unit}"}
    return {**nothing, "p": test["p"], "t": test["t"], "dz": test["mean"] / test["sd"]}


def holm(values: Mapping[Name, float | None]) -> dict[Name, float | None]:
    """Holm's adjusted p-values; what has no p-value stays without and does not count.

    Sorted from the smallest, the k-th of m (from 0) is multiplied by m - k; none is then below the
    one before it, nor above 1. scipy corrects for the false discovery rate alone.
    """
    known = sorted((p, name) for name, p in values.items() if p is not None)
    adjusted: dict[Name, float | None] = dict.fromkeys(values)
    highest = 0.0
    for position, (p, name) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - position)))
        adjusted[name] = highest
    return adjusted


def range_test(width: float, run_sd: float | None, groups: int, runs: int) -> float | None:
    """Tukey's p-value of the range of group means against the spread of runs; None with one run.

    Args:
        width: the highest mean less the lowest.
        run_sd: pooled deviation between runs of one group.
    """
    if run_sd is None or runs < 2:
        return None
    from scipy.stats import studentized_range

    if run_sd == 0:
        return 1.0 if width == 0 else 0.0
    q = width / (run_sd / math.sqrt(runs))
    return float(studentized_range.sf(q, groups, groups * (runs - 1)))


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
    from scipy.stats import PermutationMethod, pearsonr, rankdata, spearmanr

    alternative = "greater" if direction == "grows" else "less"
    result = spearmanr(x, y, alternative=alternative)
    if len(x) <= EXACT:
        every = PermutationMethod(n_resamples=math.factorial(len(x)))
        exact = pearsonr(rankdata(x), rankdata(y), alternative=alternative, method=every)
        return {**found, "rho": float(result.statistic), "p": float(exact.pvalue)}
    return {**found, "rho": float(result.statistic), "p": float(result.pvalue)}


def ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Rank 1 for the highest score; equal scores share the mean of their ranks."""
    from scipy.stats import rankdata

    if any(not math.isfinite(score) for score in scores.values()):
        raise ValueError(f"only finite scores have ranks, got {dict(scores)}")
    found = rankdata([-score for score in scores.values()], method="average")
    return {name: float(rank) for name, rank in zip(scores, found, strict=True)}
