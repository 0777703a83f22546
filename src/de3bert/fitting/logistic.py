"""Linear heads as multinomial logistic regressions: convex, so there is one answer per strength.

How sure a head may be is another question than what it answers. A row that leaves gives up the
final exit's answer, so an exit should be as sure as it is likely to give that same answer. Each
head is therefore scaled to agreement with the final exit, on rows that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from de3bert.fitting.moments import ClassMoments, Singles, parts

__all__ = ["STRENGTHS", "Head", "agreement", "cross_entropy", "fit_head", "fit_heads"]

Floats = NDArray[np.float64]
# C of scikit-learn, from strong to weak: one over the weight of the penalty beside a sum of losses.
STRENGTHS: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LARGEST = 50.0  # by which logits are scaled up or down at most
WORSE = 1.02  # a loss on held rows so many times the best ends the search: weaker is worse still
STEPS = 100
GRADIENT = 1e-4  # of the mean loss, in coordinates where its second derivative is about 1
STEEPNESS = 0.1  # p (1 - p), from 0 where all is sure to 0.25


@dataclass(frozen=True, eq=False)
class Head:
    """z = weight s + bias, and what it was fitted with.

    Attributes:
        weight: (classes, hidden), scaled.
        bias: (classes,), scaled.
        strength: C, which of those tried gives the least loss on held rows.
        scale: what the logits were multiplied with, so that they are as sure as they agree.
        loss: that loss: mean cross-entropy with the final exit's answers.
    """

    weight: Floats
    bias: Floats
    strength: float
    scale: float = 1.0
    loss: float = float("nan")

    def logits(self, vectors: Singles) -> Floats:
        """(rows, hidden) -> (rows, classes)"""
        return vectors @ self.weight.T + self.bias


def fit_heads(
    vectors: Singles,
    targets: Singles,
    moments: ClassMoments,
    held: Singles,
    answers: NDArray[np.int64],
    strengths: Sequence[float] = STRENGTHS,
) -> Head:
    """The head of one exit, its strength and scale chosen on rows that it was not fitted to.

    Args:
        vectors: (rows, hidden), may be mapped from a file.
        targets: (rows, classes), labels as weights that add up to 1.
        moments: of these rows; their centre and scale are what the penalty is measured in.
        held: vectors of those rows, (rows, hidden).
        answers: the class that the final exit gives them, (rows,).
        strengths: rising; each starts from where the one before has ended.
    """
    best: Head | None = None
    start: tuple[Floats, Floats] | None = None
    for strength in strengths:
        head, start = fit_head(vectors, targets, moments, strength, start)
        scale, loss = agreement(head.logits(held), answers)
        if best is None or loss < best.loss:
            best = Head(scale * head.weight, scale * head.bias, strength, scale, loss)
        elif loss > WORSE * best.loss:
            break
    assert best is not None  # there is a strength
    return best


def fit_head(
    vectors: Singles,
    targets: Singles,
    moments: ClassMoments,
    strength: float,
    start: tuple[Floats, Floats] | None = None,
) -> tuple[Head, tuple[Floats, Floats]]:
    """One strength: the least of

        mean_n sum_k -q_nk log softmax(V u_n + b)_k  +  |V|^2 / (2 C N),   u = (s - centre) / scale

    Returns:
        The head on plain vectors, and the solution to start a neighbouring strength from.
    """
    problem = _Problem(vectors, targets, moments, penalty=1.0 / (strength * len(vectors)))
    if start is None:
        share = np.log(np.maximum(moments.mass / moments.rows, 1e-6))
        start = np.zeros(problem.shape), share - share.mean()
    solved = minimize(
        problem,
        np.concatenate([problem.inner(start[0]).ravel(), start[1]]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": STEPS, "gtol": GRADIENT, "ftol": 1e-7},
    )
    found = problem.weights(solved.x)
    return Head(*problem.on_vectors(*found), strength), found


def agreement(logits: Floats, answers: NDArray[np.int64]) -> tuple[float, float]:
    """The scale at which logits are as sure as they agree with answers, and the loss there.

    The scale is the least of the mean cross-entropy of softmax(scale z) with the answers, within a
    factor of `LARGEST`: where all rows agree there is no least.
    """
    wanted = np.eye(logits.shape[1])[answers]
    reach = float(np.log(LARGEST))
    found = minimize_scalar(
        lambda power: cross_entropy(np.exp(power) * logits, wanted),
        bounds=(-reach, reach),
        method="bounded",
    )
    return float(np.exp(found.x)), float(found.fun)


def cross_entropy(logits: NDArray[np.floating], targets: NDArray[np.floating]) -> float:
    """mean_n sum_k -q_nk log softmax(z_n)_k"""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(axis=1))
    return float((log_total - (targets * shifted).sum(axis=1)).mean(dtype=np.float64))


class _Problem:
    """Loss and gradient in coordinates where the loss is about as steep in all directions.

    Near its least the second derivative in V is about a T + penalty I, with T the covariance of all
    vectors and a = mean p (1 - p). With V = Y R and R its inverse root, that of Y is about I, and
    some ten steps are enough where it would take hundreds. The vectors stay unchanged: centre,
    scale and R act on the weights.
    """

    def __init__(
        self, vectors: Singles, targets: Singles, moments: ClassMoments, penalty: float
    ) -> None:
        self.vectors, self.targets, self.penalty = vectors, targets, penalty
        self.centre, self.scale = moments.centre, moments.scale
        self.shape = targets.shape[1], vectors.shape[1]
        values, axes = moments.spectrum
        self.root = (axes / np.sqrt(STEEPNESS * np.maximum(values, 0.0) + penalty)) @ axes.T

    def inner(self, weight: Floats) -> Floats:
        """Y of V. (classes, hidden)"""
        return np.linalg.solve(self.root, weight.T).T.astype(np.float64)

    def weights(self, solution: Floats) -> tuple[Floats, Floats]:
        """V and b."""
        classes, hidden = self.shape
        inner = solution[: classes * hidden].reshape(self.shape)
        return inner @ self.root, solution[-classes:]

    def on_vectors(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """Weights and bias for vectors that are neither centred nor scaled."""
        plain = weight / self.scale
        return plain, bias - plain @ self.centre

    def __call__(self, solution: Floats) -> tuple[float, Floats]:
        classes, _ = self.shape
        inside, level_of = self.weights(solution)
        weight, bias = self.on_vectors(inside, level_of)
        single, level = weight.T.astype(np.float32), bias.astype(np.float32)
        loss, away = 0.0, np.zeros(classes)
        slope: Floats = np.zeros(self.shape)
        for part in parts(len(self.vectors)):
            x, wanted = self.vectors[part], self.targets[part]
            logits = x @ single + level
            logits -= logits.max(axis=1, keepdims=True)
            likely = np.exp(logits)
            total = likely.sum(axis=1, keepdims=True)
            loss += float((np.log(total[:, 0]) - (wanted * logits).sum(axis=1)).sum(dtype=float))
            likely /= total
            likely -= wanted
            slope += (likely.T @ x).astype(np.float64)
            away += likely.sum(axis=0, dtype=float)
        rows = len(self.vectors)
        steep = (slope - away[:, None] * self.centre) / self.scale / rows + self.penalty * inside
        gradient = np.concatenate([(steep @ self.root).ravel(), away / rows])
        return loss / rows + 0.5 * self.penalty * float(np.square(inside).sum()), gradient
