"""Means and covariances by sums, against loops over rows."""

from __future__ import annotations

import numpy as np
import pytest

from de3bert.fitting import moments
from de3bert.fitting.moments import class_moments


def soft_rows(rows: int, hidden: int, classes: int, seed: int = 0, *, hard: bool = False):
    rng = np.random.default_rng(seed)
    vectors = (rng.normal(size=(rows, hidden)) * np.linspace(0.1, 5, hidden) + 3).astype(np.float32)
    targets = rng.dirichlet(np.ones(classes), rows).astype(np.float32)
    if hard:
        targets = np.eye(classes, dtype=np.float32)[rng.integers(0, classes, rows)]
    return vectors, targets


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("chunk", [7, 10_000])
def test_against_a_loop(monkeypatch, hard, chunk):
    monkeypatch.setattr(moments, "CHUNK", chunk)
    vectors, targets = soft_rows(40, 5, 3, hard=hard)
    found = class_moments(vectors, targets)
    x = (vectors - vectors.mean(0)) / vectors.std(0)
    mass = [sum(float(q[k]) for q in targets) for k in range(3)]
    means = [sum(q[k] * row for q, row in zip(targets, x, strict=True)) / mass[k] for k in range(3)]
    within, fourth = np.zeros((5, 5)), 0.0
    for q, row in zip(targets, x, strict=True):
        for k in range(3):
            away = row - means[k]
            within += q[k] * np.outer(away, away) / 40
            fourth += q[k] * float(away @ away) ** 2 / 40
    np.testing.assert_allclose(found.mass, mass, rtol=1e-6)
    np.testing.assert_allclose(found.means, means, atol=1e-5)
    np.testing.assert_allclose(found.within, within, atol=1e-5)
    assert found.fourth == pytest.approx(fourth, rel=1e-4)


def test_the_spectrum_is_that_of_all_rows():
    vectors, targets = soft_rows(60, 6, 2)
    values, axes = class_moments(vectors, targets).spectrum
    x = (vectors - vectors.mean(0)) / vectors.std(0)
    np.testing.assert_allclose((axes * values) @ axes.T, x.T @ x / 60, atol=1e-5)


def test_numbers_that_never_change_are_not_divided_by_rounding():
    vectors, targets = soft_rows(30, 4, 2)
    vectors[:, 1] = 7.3
    found = class_moments(vectors, targets)
    assert found.scale[1] == 1.0
    assert np.isfinite(found.within).all()
    np.testing.assert_allclose(found.within[1], 0, atol=1e-5)


def test_a_class_without_rows_has_the_mean_of_all():
    vectors, _ = soft_rows(30, 4, 3)
    targets = np.eye(3, dtype=np.float32)[np.arange(30) % 2]
    np.testing.assert_allclose(class_moments(vectors, targets).means[2], 0, atol=1e-6)
