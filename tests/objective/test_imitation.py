"""Foreseeing later states."""

from __future__ import annotations

import math

import pytest
import torch

from de3bert.objective.imitation import foresight_error, imitation


def slow(states: list, futures: list) -> float:
    """One row, source and target at a time, in the words of the definition."""
    total = 0.0
    for row, seen in enumerate(states):
        exits = len(seen)
        for i in range(exits - 1):
            gaps = []
            for j in range(i + 1, exits):
                true, guess = seen[j], futures[row][i][j]
                dot = sum(a * b for a, b in zip(true, guess, strict=True))
                gaps.append(1 - dot / (math.hypot(*true) * math.hypot(*guess)))
            total += sum(gaps) / len(gaps) / (exits - 1)
    return total / len(states)


@pytest.mark.parametrize("exits", [2, 3, 5])
def test_against_a_loop(make, exits) -> None:
    batch = make(exits=exits)
    expected = slow(batch.states.tolist(), batch.heads.futures(batch.states).tolist())
    assert imitation(batch).item() == pytest.approx(expected, abs=1e-5)


def test_known_error() -> None:
    states = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    futures = torch.full((1, 3, 3, 2), float("nan"))  # what is not later must not be read
    futures[0, 0, 1] = torch.tensor([1.0, 1.0])  # 0.292893 away
    futures[0, 0, 2] = torch.tensor([0.0, -1.0])  # 2 away
    futures[0, 1, 2] = torch.tensor([0.0, 3.0])  # right
    expected = ((0.292893 + 2) / 2 + 0) / 2
    assert foresight_error(states, futures).item() == pytest.approx(expected, abs=1e-6)


def test_perfect_foresight_has_no_error(make) -> None:
    states = make().states
    futures = states[:, None].expand(-1, 4, -1, -1)
    assert foresight_error(states, futures).item() == pytest.approx(0.0, abs=1e-6)


def test_no_gradient_comes_through_what_is_not_foreseen(make) -> None:
    batch = make()
    futures = batch.heads.futures(batch.states).detach().requires_grad_()
    foresight_error(batch.states, futures).backward()
    assert batch.states.grad is None  # the true states are constants
    reached = (futures.grad != 0).any(-1).all(0)
    assert torch.equal(reached, torch.ones(4, 4).triu(1).bool())
