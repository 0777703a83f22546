"""From measured times to the costs of a layer and of an exit test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from de3bert.errors import UsageError
from de3bert.exits.cost_model import BatchCost, TimeSample

__all__ = ["fit_batches"]


def fit_batches(
    samples: Iterable[TimeSample | tuple[int, int, int, int, float]],
) -> dict[int, BatchCost]:
    """The costs of each batch size, every length fitted separately."""
    groups: dict[int, dict[int, list[TimeSample]]] = {}
    for sample in (TimeSample(*each) for each in samples):
        groups.setdefault(sample.batch, {}).setdefault(sample.tokens, []).append(sample)
    if 1 not in groups:
        raise UsageError(f"Measure at batch size 1 as well; there are samples at {list(groups)}.")
    return {batch: _fit_lengths(groups[batch]) for batch in sorted(groups)}


def _fit_lengths(lengths: dict[int, list[TimeSample]]) -> BatchCost:
    grid = tuple(sorted(lengths))
    costs = [_fit_point(lengths[tokens]) for tokens in grid]
    fixed, layer, test = (tuple(column) for column in zip(*costs, strict=True))
    return BatchCost(grid, fixed, layer, test)


def _fit_point(samples: Sequence[TimeSample]) -> tuple[float, float, float]:
    """(fixed, layer, test) with the least sum of squared errors, none of them negative."""
    from scipy.optimize import nnls  # here, because importing scipy is slow

    done = np.asarray([[1.0, each.layers, each.tests] for each in samples])
    spent = np.asarray([each.milliseconds for each in samples], dtype=np.float64)
    used = done.any(axis=0)
    if not np.isfinite(spent).all() or np.linalg.matrix_rank(done) < used.sum():
        raise UsageError(
            f"The {len(samples)} times at batch size {samples[0].batch} and {samples[0].tokens} "
            "tokens do not tell the cost of a layer from the rest. Measure finite times at two "
            "depths or more, with and without testing exits."
        )
    fixed, layer, test = nnls(done, spent)[0].tolist()
    return fixed, layer, test
