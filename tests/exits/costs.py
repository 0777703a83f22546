"""A small cost model for the tests, with numbers that nothing has by accident."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.exits.traces import make_trace

from de3bert.exits import CostModel, Trace
from de3bert.exits.cost_model import BatchCost

COST = CostModel(
    {
        1: BatchCost((10, 30, 100), (0.9, 1.1, 1.5), (0.31, 0.5, 1.3), (0.05, 0.07, 0.06)),
        8: BatchCost((10, 100), (2.0, 4.0), (1.1, 7.3), (0.2, 0.3)),
    },
    ((10, 50), (0.02, 0.1)),
    {"machine": "toy"},
)


def with_test_cost(milliseconds: float) -> CostModel:
    """The same machine with another price for testing an exit."""
    one = replace(COST.batches[1], test=(milliseconds,) * 3)
    return replace(COST, batches={1: one})


def timed_trace(rows: int = 200, exits: int = 6, seed: int = 0, noise: float = 1.0) -> Trace:
    """Rows of all lengths, from below the grid to above it; exits that get better slowly."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    truth = np.eye(3)[labels][:, None, :]
    gain = np.linspace(0.8, 4.0, exits)[None, :, None]
    hard = noise * rng.normal(size=(rows, 1, 3))  # a hard row is hard at every exit
    logits = gain * truth + hard + 0.5 * noise * rng.normal(size=(rows, exits, 3))
    distances = 0.9 - 0.1 * gain[:, :-1] * truth + 0.1 * rng.normal(size=(rows, exits - 1, 3))
    lengths = rng.integers(3, 140, rows)
    return make_trace(logits, labels, np.clip(distances, 0.01, 2), tokens=lengths)


def slow_by_length(length: float, grid: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Straight lines between neighbouring points, the last one prolonged."""
    if length <= grid[0] or len(grid) == 1:
        return values[0]
    for low in range(len(grid) - 1):
        if length <= grid[low + 1] or low == len(grid) - 2:
            part = (length - grid[low]) / (grid[low + 1] - grid[low])
            return max(0.0, values[low] + part * (values[low + 1] - values[low]))
    raise AssertionError


def slow_milliseconds(
    cost: CostModel, tokens: float, layers: int, tests: int, batch: int = 1
) -> float:
    table = cost.batches[batch]
    fixed, layer, test = (
        slow_by_length(tokens, table.tokens, column)
        for column in (table.fixed, table.layer, table.test)
    )
    return fixed + layer * layers + test * tests


def slow_text(cost: CostModel, tokens: float, layers: int, tests: int) -> float:
    return slow_milliseconds(cost, tokens, layers, tests) + slow_by_length(tokens, *cost.tokenise)
