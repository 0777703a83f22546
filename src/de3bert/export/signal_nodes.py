"""The signals of `de3bert.exits.signals` as nodes, for one row.

In float64 as there: a sure row has 1 - p below the step of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from de3bert.exits.signals.formulas import DISTANCE_FLOOR, TINY
from de3bert.export.nodes import DOUBLE, Nodes, Value

__all__ = ["SIGNAL_NODES", "Exit", "distance_ratio", "entropy", "fused"]


@dataclass(frozen=True)
class Exit:
    """What a rule may read of one exit.

    Attributes:
        logits: (1, classes).
        certainty: of its router, (1,).
        distances: the function that computes them and what it takes them of, (1, hidden).
    """

    logits: Value
    certainty: Value | None = None
    distances: tuple[ir.Function, Value] | None = None


def entropy(nodes: Nodes, seen: Exit) -> Value:
    """-sum_k p_k log p_k / log K, (1,). Logits are finite, so no log p is infinite."""
    logs = nodes.op("LogSoftmax", nodes.cast(seen.logits, DOUBLE), axis=1)
    products = nodes.op("Mul", nodes.op("Exp", logs), logs)
    assert seen.logits.shape is not None
    classes = seen.logits.shape[1]
    assert isinstance(classes, int)
    scale = nodes.constant(-1.0 / math.log(classes))
    return nodes.op("Mul", _sum(nodes, products), scale)


def max_probability(nodes: Nodes, seen: Exit) -> Value:
    """max_k p_k, (1,)."""
    shares = nodes.op("Softmax", nodes.cast(seen.logits, DOUBLE), axis=1)
    return nodes.op("ReduceMax", shares, nodes.constant([1], np.int64), keepdims=0)


def raw_energy(nodes: Nodes, seen: Exit) -> Value:
    """-logsumexp(z), (1,)."""
    axis = nodes.constant([1], np.int64)
    exact = nodes.cast(seen.logits, DOUBLE)
    return nodes.op("Neg", nodes.op("ReduceLogSumExp", exact, axis, keepdims=0))


def energy(nodes: Nodes, seen: Exit) -> Value:
    """sigmoid(-logsumexp(z)), (1,)."""
    return nodes.op("Sigmoid", raw_energy(nodes, seen))


def certainty(nodes: Nodes, seen: Exit) -> Value:
    """What the router says, (1,)."""
    assert seen.certainty is not None  # the form was checked against the model
    return nodes.cast(seen.certainty, DOUBLE)


def distance_ratio(nodes: Nodes, seen: Exit) -> Value:
    """(1 + (near - far) / max(near, far)) / 2 of the two likeliest classes, (1,).

    Of equal logits the first is likelier, in `TopK` as in numpy.
    """
    assert seen.distances is not None  # the form was checked against the model
    function, pooled = seen.distances
    (distances,) = nodes.call(function, [pooled])
    _, likeliest = nodes.ops("TopK", [seen.logits, nodes.constant([2], np.int64)], 2, axis=1)
    nearest = nodes.op("GatherElements", distances, likeliest, axis=1)
    exact = nodes.op("Squeeze", nodes.cast(nearest, DOUBLE), nodes.constant([0], np.int64))
    near, far = nodes.split(exact, 2)
    larger = nodes.op("Max", near, far, nodes.constant(DISTANCE_FLOOR))
    share = nodes.op("Div", nodes.op("Sub", near, far), larger)
    half = nodes.constant(0.5)
    return nodes.op("Add", nodes.op("Mul", share, half), half)


def fused(nodes: Nodes, local: Value, ratio: Value, weight: Value, whole: Value) -> Value:
    """EDR = (w + 1) E DR / (w E + DR), 0 where both are 0, (1,); `whole` is w + 1."""
    divisor = nodes.op("Add", nodes.op("Mul", weight, local), ratio)
    divisor = nodes.op("Max", divisor, nodes.constant(TINY))
    above = nodes.op("Mul", whole, nodes.op("Mul", local, ratio))
    return nodes.op("Div", above, divisor)


def _sum(nodes: Nodes, values: Value) -> Value:
    return nodes.op("ReduceSum", values, nodes.constant([1], np.int64), keepdims=0)


SIGNAL_NODES: Mapping[str, Callable[[Nodes, Exit], Value]] = {
    "entropy": entropy,
    "max_probability": max_probability,
    "energy": energy,
    "raw_energy": raw_energy,
    "certainty": certainty,
    "distance_ratio": distance_ratio,
}
