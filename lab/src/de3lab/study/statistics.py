"""Paired tests, correction for many of them, effect sizes and ranks. Plain numbers in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["holm", "paired_test", "ranks", "summary"]

NO_SPREAD = 1e-12  # differences that vary less are one and the same number


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Mean, sample deviation (None for one value) and count."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "sd": spread, "n": len(values)}


def paired_test(ours: Sequence[float], theirs: Sequence[float], unit: str) -> dict[str, Any]:
    """One-tailed paired t-test of "ours is higher", with the effect size d_z.

        t = mean(d) / (sd(d) / sqrt(n)),   d_z = mean(d) / sd(d)

    Args:
        ours: one value per pair, (n,); likewise `theirs`, in the same order.
        unit: what the pairs are ("seeds", "tasks"), for the reason when there is no test.

    Returns:
        difference, n, p, t, dz; p, t and dz are None, with a reason, when they are not defined.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    count = len(differences)
    found: dict[str, Any] = {
        "n": count,
        "difference": float(differences.mean()) if count else None,
        "p": None,
        "t": None,
        "dz": None,
    }
    if count < 2:
        return {**found, "reason": f"a test needs at least 2 {unit}, there are {count}"}
    spread = float(differences.std(ddof=1))
    if spread < NO_SPREAD:
        return {**found, "reason": f"the difference is the same for all {unit}"}
    from scipy.stats import ttest_rel

    result = ttest_rel(ours, theirs, alternative="greater")
    effect = float(differences.mean()) / spread
    return {**found, "p": float(result.pvalue), "t": float(result.statistic), "dz": effect}


def holm(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's adjusted p-values; what has no p-value stays without and does not count.

    Sorted from the smallest, the k-th of m (from 0) is multiplied by m - k; none is then below the
    one before it, nor above 1.
    """
    known = sorted((p, name) for name, p in values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(values)
    highest = 0.0
    for position, (p, name) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - position)))
        adjusted[name] = highest
    return adjusted


def ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Rank 1 for the highest score; equal scores share the mean of their ranks."""
    from scipy.stats import rankdata

    if any(not math.isfinite(score) for score in scores.values()):
        raise ValueError(f"only finite scores have ranks, got {dict(scores)}")
    found = rankdata([-score for score in scores.values()], method="average")
    return {name: float(rank) for name, rank in zip(scores, found, strict=True)}
