"""The signals of a single row, in plain floats.

A live engine with one text asks for one value at every exit. On two or three classes the array
functions then spend their time on calls, not on arithmetic: the same formula in plain Python takes
a tenth of it. The formulas and guards are those of `formulas`; a test holds the two together.
NaN comes out as NaN, as there: every guard is written so that a comparison with NaN keeps the NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from de3bert.exits.signals.formulas import DISTANCE_FLOOR, LOWEST_LOGIT, TINY, check_classes

__all__ = [
    "FEW_CLASSES",
    "certainty",
    "distance_ratio",
    "edr",
    "energy",
    "entropy",
    "max_probability",
    "raw_energy",
    "worst_distance_ratio",
    "worst_edr",
]

Row: TypeAlias = list[float]  # one value per class, (classes,)
Params: TypeAlias = Mapping[str, float]

FEW_CLASSES = 100  # with more, a loop over them is slower than the array functions


def entropy(logits: Row, distances: Row | None, params: Params) -> float:
    """E = (log S - sum_k p_k s_k) / log K with s = z - max z, S = sum_k exp(s_k)."""
    classes = check_classes(len(logits))
    shifted = _shifted(logits)
    weights = [math.exp(value) for value in shifted]
    total = sum(weights)
    inner = sum([weight * value for weight, value in zip(weights, shifted, strict=True)])
    share = (math.log(total) - inner / total) / math.log(classes)
    return 0.0 if share < 0.0 else 1.0 if share > 1.0 else share


def max_probability(logits: Row, distances: Row | None, params: Params) -> float:
    """1 / S: the probability of the likeliest class."""
    check_classes(len(logits))
    return 1.0 / _total(logits)


def raw_energy(logits: Row, distances: Row | None, params: Params) -> float:
    """-logsumexp(z)."""
    return -(math.log(_total(logits)) + max(logits))


def energy(logits: Row, distances: Row | None, params: Params) -> float:
    """sigmoid(-logsumexp(z)) = exp(-log(1 + exp x)) with x = logsumexp(z)."""
    size = -raw_energy(logits, distances, params)
    above = 0.0 if size < 0.0 else size
    return math.exp(-(above + math.log1p(math.exp(-abs(size)))))


def distance_ratio(logits: Row, distances: Row | None, params: Params) -> float:
    """DR = (1 + (near - far) / max(near, far)) / 2 for the two likeliest classes."""
    assert distances is not None  # a signal that needs distances is not asked without them
    first, second = _likeliest_two(logits)
    near, far = distances[first], distances[second]
    near, far = 0.0 if near < 0.0 else near, 0.0 if far < 0.0 else far
    larger = far if near < far else near
    return 0.5 * (1.0 + (near - far) / (DISTANCE_FLOOR if larger < DISTANCE_FLOOR else larger))


def edr(logits: Row, distances: Row | None, params: Params) -> float:
    """EDR = (w + 1) E DR / (w E + DR)."""
    local = entropy(logits, distances, params)
    return _fused(local, distance_ratio(logits, distances, params), params["lambda"])


def certainty(logits: Row, distances: Row | None, params: Params) -> float:
    """What the router says; it comes along with the parameters."""
    return params["certainty"]


def worst_distance_ratio(logits: Row, params: Params) -> float:
    """The largest distance ratio there is: DR <= 1."""
    return 1.0


def worst_edr(logits: Row, params: Params) -> float:
    """The largest EDR that these logits allow: it rises with DR <= 1, so E (w + 1) / (w E + 1)."""
    return _fused(entropy(logits, None, params), 1.0, params["lambda"])


def _fused(local: float, ratio: float, weight: float) -> float:
    if weight == 0:
        return local
    share, rest = weight / (weight + 1.0), 1.0 / (weight + 1.0)
    divisor = share * local + rest * ratio
    return ratio * (local / (TINY if divisor < TINY else divisor))


def _shifted(logits: Row) -> Row:
    peak = max(logits)
    return [LOWEST_LOGIT if value - peak < LOWEST_LOGIT else value - peak for value in logits]


def _total(logits: Row) -> float:
    return sum([math.exp(value) for value in _shifted(logits)])


def _likeliest_two(logits: Row) -> tuple[int, int]:
    """Equal logits rank by the lower index; -inf still ranks before the class already taken."""
    check_classes(len(logits))
    first = logits.index(max(logits))
    others = [LOWEST_LOGIT if value < LOWEST_LOGIT else value for value in logits]
    others[first] = -math.inf
    return first, others.index(max(others))
