"""How much higher one is than the other, over pairs of runs, and whether that is beyond noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3lab.statistics import described, paired_test, percentile_interval, student_interval

__all__ = ["difference"]

Floats = NDArray[np.float64]
ROUNDING = 1e-12  # a difference nearer to 0 is none


def difference(ours: Sequence[float], theirs: Sequence[float], drawn: Floats) -> dict[str, Any]:
    """ours - theirs over pairs of runs.

    There are two kinds of noise. Another seed trains another model: with two pairs or more, the
    test and the interval `over_seeds` are about that. Other rows would be scored otherwise: the
    interval `over_rows` is about that.

    Args:
        ours: one score per pair, (n,); likewise `theirs`, in the same order.
        drawn: the mean difference on resampled rows, (resamples,).

    Returns:
        mean, sd, n, values; p, t, dz of the one-tailed paired test that ours is higher, None with
        a `reason` where there is none; over_seeds, over_rows: 95 % intervals, None where there is
        none; beyond_noise: whether no interval holds 0.
    """
    values = (np.asarray(ours) - np.asarray(theirs)).tolist()
    test = paired_test(ours, theirs, unit="seeds")
    intervals = {"over_seeds": student_interval(values), "over_rows": percentile_interval(drawn)}
    known = [each for each in intervals.values() if each is not None]
    return {
        **described(values),
        **{name: test[name] for name in ("p", "t", "dz", "reason") if name in test},
        **{name: None if each is None else list(each) for name, each in intervals.items()},
        "beyond_noise": not any(low <= ROUNDING and high >= -ROUNDING for low, high in known),
    }
