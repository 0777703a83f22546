"""How sure is one exit? Pure functions of its logits and of its distances to the class prototypes.

Every function takes numpy or torch arrays of any leading shape and works along the last axis, so
the same line of arithmetic serves a stored trace, a live batch and a training term. Nothing is
done in place: gradients flow wherever the formula has one. Half precision and integers are
computed in float32.

The distances are cosine distances to the prototypes of the K classes, in [0, 2].
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from array_api_compat import array_namespace, device

from de3bert.errors import UsageError

__all__ = [
    "check_classes",
    "cosine_distance",
    "distance_ratio",
    "edr",
    "energy",
    "entropy",
    "max_probability",
    "nearest_two",
    "probabilities",
]

Array: TypeAlias = Any  # a numpy array or a torch tensor: whatever came in comes out

# The guards, all in one place. They go through maximum and not clip: it is ten times as fast on
# the few rows of a live batch, and lets NaN through to whoever reports it.
LOWEST_LOGIT = -1e30  # stands for -inf: exp() of it is 0, and 0 times it is 0 instead of NaN
DISTANCE_FLOOR = 1e-12  # below this a distance is rounding; makes distance_ratio(0, 0) = 0.5
TINY = 1e-30  # smallest divisor of a norm or of the harmonic mean


def probabilities(logits: Array) -> Array:
    """Softmax along the last axis, safe for logits of any size. Shape unchanged."""
    xp, logits = _floats(logits)
    weights = xp.exp(_shifted(xp, logits))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def entropy(logits: Array) -> Array:
    """Normalised entropy of the softmax: 0 when certain, 1 when all classes are equally likely.

    E = H(p) / log K with H = log S - sum_k p_k s_k, where s = z - max z and S = sum_k exp(s_k).
    The usual `p log p` is NaN for a saturated softmax, and NaN < tau is False: it would keep
    exactly the surest rows. This form stays finite. (..., K) -> (...)
    """
    xp, logits = _floats(logits)
    classes = _classes(logits)
    shifted = _shifted(xp, logits)
    weights = xp.exp(shifted)
    total = xp.sum(weights, axis=-1)
    nats = xp.log(total) - xp.sum(weights * shifted, axis=-1) / total
    return xp.minimum(xp.maximum(nats / math.log(classes), 0.0), 1.0)


def max_probability(logits: Array) -> Array:
    """Probability of the likeliest class, in [1/K, 1]; higher is safer. (..., K) -> (...)"""
    xp, logits = _floats(logits)
    _classes(logits)
    return 1.0 / xp.sum(xp.exp(_shifted(xp, logits)), axis=-1)


def energy(logits: Array, normalised: bool = True) -> Array:
    """Free energy -logsumexp(z), or its sigmoid in (0, 1) when `normalised`; low is easy.

    Unlike entropy it sees the size of the logits: [0, 0] and [-2, -2] differ. (..., K) -> (...)
    """
    xp, logits = _floats(logits)
    peak = xp.max(logits, axis=-1, keepdims=True)
    total = xp.sum(xp.exp(_shifted(xp, logits)), axis=-1)
    log_total = xp.log(total) + xp.squeeze(peak, axis=-1)
    if not normalised:
        return -log_total
    # sigmoid(-x) = exp(-log(1 + exp x)): keeps its relative accuracy for large x, never overflows.
    return xp.exp(-xp.logaddexp(log_total, xp.zeros_like(log_total)))


def nearest_two(logits: Array, distances: Array) -> tuple[Array, Array]:
    """Distances to the prototypes of the likeliest and of the second likeliest class.

    Classes are ranked by their logits; equal logits rank by the lower index, so that the answer
    does not depend on the array library. (..., K), (..., K) -> (...), (...)
    """
    xp, logits = _floats(logits)
    _, distances = _floats(distances)
    classes = xp.arange(_classes(logits), device=device(logits))
    first = classes == xp.argmax(logits, axis=-1, keepdims=True)
    # Clipped, so that a class with logit -inf still ranks before the one already taken.
    taken = xp.full_like(logits, -xp.inf)
    others = xp.where(first, taken, xp.maximum(logits, LOWEST_LOGIT))
    second = classes == xp.argmax(others, axis=-1, keepdims=True)
    zero = xp.zeros_like(distances)
    near = xp.sum(xp.where(first, distances, zero), axis=-1)
    far = xp.sum(xp.where(second, distances, zero), axis=-1)
    return near, far


def distance_ratio(near: Array, far: Array) -> Array:
    """Is the row nearer to its predicted class than to the runner-up? 0 is surest, 0.5 undecided.

    DR = (1 + (near - far) / max(near, far)) / 2, with distances clamped to >= 0 because a cosine
    distance may come out as -1e-8; both zero gives 0.5. Shapes broadcast.
    """
    xp, near = _floats(near)
    _, far = _floats(far)
    near, far = xp.maximum(near, 0.0), xp.maximum(far, 0.0)
    larger = xp.maximum(xp.maximum(near, far), DISTANCE_FLOOR)
    return 0.5 * (1.0 + (near - far) / larger)


def edr(entropy: Array, distance_ratio: Array, weight: float) -> Array:
    """Distance-enhanced indicator: the weighted harmonic mean of entropy E and distance ratio DR.

    EDR = (w + 1) / (w / DR + 1 / E) = E DR / (a E + b DR) with a = w / (w + 1), b = 1 / (w + 1).
    The product form has the right limit 0 when one of the two is 0; both 0 gives 0. It lies
    between E and DR, but leans to the smaller one: E < tau / (w + 1) alone implies EDR < tau.

    Args:
        weight: lambda of the paper. 0 is plain entropy, infinity would be the distance ratio.
    """
    xp, entropy = _floats(entropy)
    _, distance_ratio = _floats(distance_ratio)
    if weight == 0:  # exactly the entropy, also where DR = 0 and the product form would say 0
        return entropy
    share, rest = weight / (weight + 1.0), 1.0 / (weight + 1.0)
    divisor = xp.maximum(share * entropy + rest * distance_ratio, TINY)
    return distance_ratio * (entropy / divisor)


def cosine_distance(first: Array, second: Array) -> Array:
    """1 - cos(first, second) along the last axis. (..., d), (..., d) -> (...)

    Computed as |u - v|^2 / 2 of the unit vectors u and v: the same number, without the digits that
    1 - cos loses where they lie close. A zero vector has no direction; its distance is 1.
    """
    xp, first = _floats(first)
    _, second = _floats(second)
    squares = [xp.sum(vector * vector, axis=-1, keepdims=True) for vector in (first, second)]
    ours, theirs = (
        vector / xp.sqrt(xp.maximum(square, TINY))
        for vector, square in zip((first, second), squares, strict=True)
    )
    between = ours - theirs
    some = xp.minimum(*squares)[..., 0] > 0
    return xp.where(some, xp.sum(between * between, axis=-1) / 2, 1.0)


def _floats(values: Array) -> tuple[Any, Array]:
    """The array's namespace, and the array in float32 unless it is float32 or float64 already."""
    xp = array_namespace(values)
    if values.dtype not in (xp.float32, xp.float64):
        values = xp.astype(values, xp.float32)
    return xp, values


def _shifted(xp: Any, logits: Array) -> Array:
    return xp.maximum(logits - xp.max(logits, axis=-1, keepdims=True), LOWEST_LOGIT)


def _classes(logits: Array) -> int:
    return check_classes(int(logits.shape[-1]))


def check_classes(classes: int) -> int:
    """The number of classes, or a UsageError when there is nothing to choose from."""
    if classes < 2:
        raise UsageError(
            f"An exit signal needs at least 2 classes, but the logits have {classes}. "
            "Check the number of labels of the model."
        )
    return classes
