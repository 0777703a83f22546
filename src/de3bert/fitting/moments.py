"""Sums over rows from which means and covariances follow; any number of rows, a part at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK", "ClassMoments", "class_moments", "parts"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

CHUNK = 16_384  # rows looked at together: 25 MB of 384 numbers
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """What the rows of one exit are like: in all, and class by class.

    Attributes:
        rows: how many there were.
        mass: what each class weighs, (classes,); rows of soft labels weigh in several.
        centre: the mean over all rows, (hidden,).
        scale: the standard deviation of each number over all rows, (hidden,), never 0.
        means: of each class, in units of `scale` around `centre`, (classes, hidden).
        within: covariance within the classes, likewise, (hidden, hidden).
        fourth: mean of |x - mean of its class|^4, likewise.
    """

    rows: int
    mass: Floats
    centre: Floats
    scale: Floats
    means: Floats
    within: Floats
    fourth: float

    @functools.cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and -vectors of the covariance of all rows, in these units."""
        share = (self.mass / self.rows)[:, None]
        values, axes = np.linalg.eigh(self.within + (self.means * share).T @ self.means)
        return values, axes


def parts(rows: int) -> Iterator[slice]:
    """Stretches of rows that fit into memory together."""
    for start in range(0, rows, CHUNK):
        yield slice(start, min(start + CHUNK, rows))


def class_moments(vectors: Singles, targets: Singles) -> ClassMoments:
    """Means and the covariance within classes, weighted by soft labels.

        mean_k = sum_n q_nk x_n / sum_n q_nk
        within = 1/N sum_n sum_k q_nk (x_n - mean_k) (x_n - mean_k)^T

    A class that no row belongs to has the mean of all rows.

    Args:
        vectors: (rows, hidden); may be mapped from a file, it is read in parts.
        targets: q, (rows, classes), each row adding up to 1.
    """
    rows, hidden = vectors.shape
    centre, scale = _spread(vectors)
    mass = targets.sum(axis=0, dtype=np.float64)
    sums = np.zeros((targets.shape[1], hidden))
    second = np.zeros((hidden, hidden))
    for part in parts(rows):
        x = _units(vectors[part], centre, scale)
        sums += targets[part].T.astype(np.float64) @ x
        second += x.T @ x  # float32 products of numbers near 1, added up in float64
    means = np.where(mass[:, None] > TINY, sums / np.maximum(mass, TINY)[:, None], 0.0)
    within = (second - (means * mass[:, None]).T @ means) / rows
    fourth = 0.0
    for part in parts(rows):
        fourth += _fourth(_units(vectors[part], centre, scale), targets[part], means)
    return ClassMoments(rows, mass, centre, scale, means, within, fourth / rows)


def _spread(vectors: Singles) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each number. (hidden,) each"""
    rows, hidden = vectors.shape
    total = np.zeros(hidden)
    for part in parts(rows):
        total += vectors[part].sum(axis=0, dtype=np.float64)
    centre = total / rows
    squares = np.zeros(hidden)
    for part in parts(rows):
        squares += np.square(vectors[part] - centre).sum(axis=0)
    scale = np.sqrt(squares / rows)
    # A number that never changes says nothing, and must not be divided by its rounding errors.
    still = scale <= 1e-6 * np.maximum(np.abs(centre), 1.0)
    return centre, np.where(still, 1.0, scale)


def _units(vectors: Singles, centre: Floats, scale: Floats) -> Singles:
    return ((vectors - centre) / scale).astype(np.float32)


def _fourth(x: Singles, targets: Singles, means: Floats) -> float:
    """sum_n sum_k q_nk |x_n - mean_k|^4"""
    own = np.square(x).sum(axis=1, dtype=np.float64)[:, None]
    away = own - 2.0 * (x @ means.T) + np.square(means).sum(axis=1)
    return float((targets * np.square(np.maximum(away, 0.0))).sum())
