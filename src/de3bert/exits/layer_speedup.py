"""What an answer costs, in layers. Layer ratios are not time; time is measured elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from de3bert.errors import UsageError

__all__ = ["exit_histogram", "layer_speedup", "layers_mean"]


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


def exit_histogram(exit_layers: ArrayLike, layers: Iterable[int]) -> dict[int, int]:
    """How many rows left at each of `layers`; layers where none left count 0."""
    found, counts = np.unique(np.asarray(exit_layers), return_counts=True)
    histogram = dict.fromkeys((int(layer) for layer in layers), 0)
    for layer, count in zip(found.tolist(), counts.tolist(), strict=True):
        if layer not in histogram:
            raise UsageError(f"Rows left at layer {layer}, but exits are at {list(histogram)}.")
        histogram[layer] = count
    return histogram
