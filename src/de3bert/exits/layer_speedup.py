"""What an answer costs, in layers. Layer ratios are not time; time is measured elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from de3bert.errors import UsageError

__all__ = [
    "beyond",
    "exit_histogram",
    "layer_speedup",
    "layer_speedup_interval",
    "layers_mean",
]

ROUNDING = 1e-9
NORMAL = 1.959964  # the 97.5 % point of the normal distribution


def layers_mean(exit_layers: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Mean number of layers executed per row.

    Args:
        weights: how often each row counts, such as `Trace.weights`; by default once.
    """
    layers = np.asarray(exit_layers)
    if layers.size == 0:
        raise UsageError("No rows: the mean number of layers is not defined.")
    counts = np.ones(layers.shape, dtype=np.int64) if weights is None else np.asarray(weights)
    return float((layers * counts).sum(dtype=np.int64)) / int(counts.sum())


def layer_speedup(exit_layers: ArrayLike, depth: int, weights: ArrayLike | None = None) -> float:
    """Layers of the full model over layers executed: M N / sum_n m_n, the ratio of the paper.

    Args:
        exit_layers: where each row left, (rows,).
        depth: layers of the model compared with: of the full model, or of the backbone that a
            shorter model or a cascade is to be measured by (`Trace.base`).
        weights: as for `layers_mean`.
    """
    return depth / layers_mean(exit_layers, weights)


def layer_speedup_interval(
    exit_layers: ArrayLike,
    depth: int,
    weights: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> tuple[float, float] | None:
    """Where the layer speed-up would lie on other rows of this kind, at 95 %.

    The mean number of layers L = sum w m / sum w has the standard error
    sqrt(G / (G - 1) sum_g r_g^2) / sum w, with r_g = sum over the rows of group g of w (m - L) and
    G groups; the ends are depth / (L +- 1.96 of them). Every row is a group of its own unless
    `group` says otherwise.

    Args:
        exit_layers: where each row left, (rows,); `depth` and `weights` as for `layer_speedup`.
        group: of each row the number of what it belongs to, such as a word's sentence, (rows,):
            words of a sentence are not independent.

    Returns:
        low, high; None for fewer than two groups.
    """
    layers = np.asarray(exit_layers, dtype=np.float64)
    counts = np.ones(layers.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    groups = np.arange(layers.size) if group is None else np.asarray(group)
    _, number = np.unique(groups, return_inverse=True)
    many = int(number.max()) + 1 if layers.size else 0
    if many < 2:
        return None
    mean = layers_mean(exit_layers, weights)
    rest = np.bincount(number, weights=counts * (layers - mean))
    error = math.sqrt(many / (many - 1) * float((rest**2).sum())) / float(counts.sum())
    few = max(mean - NORMAL * error, 1.0)  # nothing runs less than a layer
    return depth / (mean + NORMAL * error), depth / few


def beyond(wanted: float, interval: Sequence[float] | None) -> bool:
    """Whether a wanted ratio lies outside the interval of what was found; False without one."""
    if interval is None:
        return False
    low, high = interval
    return not low - ROUNDING <= wanted <= high + ROUNDING


def exit_histogram(exit_layers: ArrayLike, layers: Iterable[int]) -> dict[int, int]:
    """How many rows left at each of `layers`; layers where none left count 0."""
    found, counts = np.unique(np.asarray(exit_layers), return_counts=True)
    histogram = dict.fromkeys((int(layer) for layer in layers), 0)
    for layer, count in zip(found.tolist(), counts.tolist(), strict=True):
        if layer not in histogram:
            raise UsageError(f"Rows left at layer {layer}, but exits are at {list(histogram)}.")
        histogram[layer] = count
    return histogram
