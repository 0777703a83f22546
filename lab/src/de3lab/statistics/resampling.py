"""Rows drawn with replacement, the same for every caller with the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["RESAMPLES", "row_counts", "row_draws"]

Integers: TypeAlias = NDArray[np.int64]
RESAMPLES = 1000
CHUNK = 1 << 20  # drawn rows held in memory at once; it bounds the memory, not the result


def row_draws(rows: int, resamples: int, seed: int) -> Iterator[Integers]:
    """The rows of each resample, some (resamples, rows) at a time.

    The same seed gives the same draws, so that whatever is compared is compared on the same rows.
    """
    chance = np.random.default_rng(seed)
    size = max(1, CHUNK // rows)
    for start in range(0, resamples, size):
        yield chance.integers(0, rows, size=(min(size, resamples - start), rows))


def row_counts(rows: int, resamples: int, seed: int) -> Iterator[Integers]:
    """How often each row comes up in each resample, some (resamples, rows) at a time."""
    for drawn in row_draws(rows, resamples, seed):
        places = drawn + rows * np.arange(len(drawn))[:, None]
        yield np.bincount(places.ravel(), minlength=drawn.size).reshape(drawn.shape)
