"""Heads by logistic regression: the solution of scikit-learn, strengths and scales on held rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from de3bert.fitting import logistic
from de3bert.fitting.logistic import agreement, cross_entropy, fit_head, fit_heads
from de3bert.fitting.moments import class_moments


def rows_of(rows: int = 300, hidden: int = 8, classes: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    centres = np.random.default_rng(99).normal(size=(classes, hidden)) * 0.8
    vectors = centres[labels] + rng.normal(size=(rows, hidden)) * np.linspace(0.5, 3, hidden) + 2
    return vectors.astype(np.float32), labels, np.eye(classes, dtype=np.float32)[labels]


def test_cross_entropy_by_hand():
    logits = np.array([[math.log(3.0), 0.0]])  # probabilities 3/4 and 1/4
    assert cross_entropy(logits, np.array([[1.0, 0.0]])) == pytest.approx(-math.log(0.75))
    assert cross_entropy(logits, np.array([[0.5, 0.5]])) == pytest.approx(
        -0.5 * (math.log(0.75) + math.log(0.25))
    )


@pytest.mark.parametrize("strength", [0.001, 0.1, 10.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_solution_of_scikit_learn(strength, classes):
    linear_model = pytest.importorskip("sklearn.linear_model")
    vectors, labels, targets = rows_of(classes=classes)
    found, _ = fit_head(vectors, targets, class_moments(vectors, targets), strength)
    scaled = (vectors - vectors.mean(0)) / vectors.std(0)
    # Two classes have one weight vector there and two opposite halves of it here: half the penalty.
    own = strength if classes > 2 else 2 * strength
    reference = linear_model.LogisticRegression(C=own, tol=1e-10, max_iter=10_000)
    reference.fit(scaled, labels)
    likely = np.exp(found.logits(vectors) - found.logits(vectors).max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    np.testing.assert_allclose(likely, reference.predict_proba(scaled), atol=3e-3)


def test_the_gradient_is_that_of_the_loss():
    vectors, _, targets = rows_of(rows=40, hidden=4)
    problem = logistic._Problem(vectors, targets, class_moments(vectors, targets), penalty=0.1)
    point = np.random.default_rng(1).normal(size=3 * 5) * 0.3
    step = 0.02
    for axis, slope in zip(np.eye(len(point)), problem(point)[1], strict=True):
        ahead, behind = problem(point + step * axis)[0], problem(point - step * axis)[0]
        assert slope == pytest.approx((ahead - behind) / (2 * step), abs=1e-3)


def test_soft_labels_are_rows_of_each_class_by_weight():
    vectors, _, targets = rows_of(rows=60)
    soft = (0.7 * targets + 0.1).astype(np.float32)
    soft /= soft.sum(1, keepdims=True)
    moments = class_moments(vectors, soft)
    found, _ = fit_head(vectors, soft, moments, 0.1)
    loss = cross_entropy(found.logits(vectors), soft)
    for change in np.random.default_rng(0).normal(size=(20, *found.weight.shape)) * 0.02:
        moved = logistic.Head(found.weight + change, found.bias, 0.1)
        size = lambda head: 0.5 * np.square(head.weight * moments.scale).sum() / (0.1 * 60)  # noqa: E731
        there = cross_entropy(moved.logits(vectors), soft) + size(moved)
        assert there >= loss + size(found) - 1e-5


def test_few_steps_are_enough_whatever_the_directions_are_worth():
    """The coordinates make the problem round: without them it takes hundreds of evaluations."""
    vectors, _, targets = rows_of(rows=500, hidden=30)
    vectors = (vectors @ np.diag(np.geomspace(1, 1e4, 30))).astype(np.float32)
    calls = []
    problem = logistic._Problem.__call__

    def counted(self, solution):
        calls.append(1)
        return problem(self, solution)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logistic._Problem, "__call__", counted)
        fit_head(vectors, targets, class_moments(vectors, targets), 0.01)
    assert len(calls) < 60


def test_agreement_scales_to_how_often_answers_are_given():
    """Logits of +-1 that agree in 3 of 4 rows: sure by 3/4 means a margin of log 3."""
    logits = np.array([[1.0, 0.0]] * 4)
    scale, loss = agreement(logits, np.array([0, 0, 0, 1]))
    assert scale == pytest.approx(math.log(3.0), abs=1e-3)
    assert loss == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25), abs=1e-5)


def test_agreement_of_all_rows_is_scaled_within_bounds():
    scale, _ = agreement(np.array([[1.0, 0.0]] * 4), np.zeros(4, dtype=int))
    assert 20 < scale <= logistic.LARGEST
    worst, _ = agreement(np.array([[1.0, 0.0]] * 4), np.ones(4, dtype=int))
    assert 1 / logistic.LARGEST <= worst < 0.05


def test_the_strength_is_the_best_on_held_rows():
    vectors, _, targets = rows_of(rows=60, hidden=20)
    held, answers, _ = rows_of(rows=400, hidden=20, seed=5)
    moments = class_moments(vectors, targets)
    found = fit_heads(vectors, targets, moments, held, answers)
    losses = {}
    for strength in logistic.STRENGTHS:
        head, _ = fit_head(vectors, targets, moments, strength)
        losses[strength] = agreement(head.logits(held), answers)[1]
    assert found.loss == pytest.approx(min(losses.values()), abs=2e-3)
    assert found.loss == pytest.approx(
        cross_entropy(found.logits(held), np.eye(3)[answers]), abs=1e-6
    )
