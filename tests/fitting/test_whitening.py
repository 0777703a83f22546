"""The closed-form prototypical network: what it must turn the rows into, and its hard cases."""

from __future__ import annotations

import numpy as np
import pytest

from de3bert.fitting.moments import class_moments
from de3bert.fitting.whitening import ledoit_wolf, whitening_of


def two_clouds(rows: int = 4000, hidden: int = 6, seed: int = 1):
    """Two classes apart in one number, with strongly correlated noise in all of them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    mix = rng.normal(size=(hidden, hidden)) + 3 * np.eye(hidden)
    vectors = rng.normal(size=(rows, hidden)) @ mix
    vectors[:, 0] += 2.0 * labels
    return vectors.astype(np.float32) + 5, labels, np.eye(2, dtype=np.float32)[labels]


def test_within_classes_the_rows_become_round():
    vectors, labels, targets = two_clouds()
    found = whitening_of(class_moments(vectors, targets), shrinkage=0.0)
    mapped = vectors @ found.weight.T + found.bias
    spread = sum(np.cov(mapped[labels == k].T, bias=True) * (labels == k).mean() for k in range(2))
    np.testing.assert_allclose(spread, np.eye(6), atol=2e-3)


def test_prototypes_are_the_class_means_around_their_middle():
    vectors, labels, targets = two_clouds()
    found = whitening_of(class_moments(vectors, targets))
    mapped = vectors @ found.weight.T + found.bias
    for k in range(2):
        np.testing.assert_allclose(found.prototypes[k], mapped[labels == k].mean(0), atol=1e-3)
    np.testing.assert_allclose(found.prototypes.sum(0), 0, atol=1e-6)
    # However unequal the classes, the middle is between the means and not where most rows are.
    rare = np.concatenate([vectors[labels == 0], vectors[labels == 1][:20]])
    weights = np.eye(2, dtype=np.float32)[[0] * int((labels == 0).sum()) + [1] * 20]
    np.testing.assert_allclose(
        whitening_of(class_moments(rare, weights)).prototypes.sum(0), 0, atol=1e-6
    )


def test_the_direction_to_a_prototype_is_that_of_fisher():
    vectors, labels, targets = two_clouds()
    found = whitening_of(class_moments(vectors, targets), shrinkage=0.0)
    apart = vectors[labels == 1].mean(0) - vectors[labels == 0].mean(0)
    within = sum(np.cov(vectors[labels == k].T, bias=True) * (labels == k).mean() for k in range(2))
    fisher = np.linalg.solve(within, apart)
    own = found.weight.T @ (found.prototypes[1] - found.prototypes[0])
    cosine = own @ fisher / np.linalg.norm(own) / np.linalg.norm(fisher)
    assert cosine == pytest.approx(1.0, abs=1e-4)


def test_shrinkage_is_that_of_scikit_learn():
    covariance = pytest.importorskip("sklearn.covariance")
    vectors, labels, targets = two_clouds(rows=60, hidden=12)
    found = class_moments(vectors, targets)
    x = (vectors - found.centre) / found.scale
    residual = x - found.means[labels]
    assert ledoit_wolf(found) == pytest.approx(
        covariance.ledoit_wolf(residual, assume_centered=True)[1], rel=1e-4
    )


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(5, id="fewer rows than numbers"),
        pytest.param(2, id="a row per class"),
    ],
)
def test_few_rows_give_a_finite_map(rows):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(rows, 16)).astype(np.float32)
    targets = np.eye(2, dtype=np.float32)[np.arange(rows) % 2]
    found = whitening_of(class_moments(vectors, targets))
    for part in (found.weight, found.bias, found.prototypes):
        assert np.isfinite(part).all()
    assert 0 <= found.shrinkage <= 1


def test_rows_that_are_all_the_same():
    vectors = np.ones((10, 4), dtype=np.float32)
    found = whitening_of(class_moments(vectors, np.eye(2, dtype=np.float32)[np.arange(10) % 2]))
    assert np.isfinite(found.weight).all()


def test_many_classes_with_one_row_each():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(50, 8)).astype(np.float32)
    found = whitening_of(class_moments(vectors, np.eye(50, dtype=np.float32)))
    assert found.prototypes.shape == (50, 8)
    assert np.isfinite(found.prototypes).all()
