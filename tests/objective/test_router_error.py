"""Learning to exit."""

from __future__ import annotations

import pytest
import torch

from de3bert.objective import ExitBatch
from de3bert.objective.per_row import correct, first_exit
from de3bert.objective.router_error import router_error


def test_known_error() -> None:
    logits = torch.tensor([[[2.0, 0.0], [2.0, 0.0], [0.0, 1.0]]])  # right, then wrong below
    for labels, certainty in (([0], [[0.8, 1.0]]), ([1], [[0.3, 0.0]])):
        batch = ExitBatch(logits, torch.tensor(labels), None, {}, torch.tensor(certainty))
        assert router_error(batch).item() == pytest.approx({0: 0.02, 1: 0.045}[labels[0]])
    both = ExitBatch(
        logits[:, :2].expand(2, -1, -1),
        torch.tensor([0, 1]),
        None,
        {},
        torch.tensor([[0.8], [0.3]]),  # against the targets 1 and 0
    )
    assert router_error(both).item() == pytest.approx(0.065)


def test_against_a_loop(make) -> None:
    batch = make(rows=7)
    squares = []
    for row, label in enumerate(batch.labels.tolist()):
        for index in range(3):  # the final exit is never asked
            logits = batch.exit_logits[row, index].tolist()
            target = 1.0 if logits.index(max(logits)) == label else 0.0
            squares.append((batch.certainty[row, index].item() - target) ** 2)
    assert router_error(batch).item() == pytest.approx(sum(squares) / len(squares), abs=1e-6)


def test_a_router_that_knows_has_no_error(make) -> None:
    batch = make()
    knows = correct(batch.exit_logits[:, :-1], batch.labels).float()
    assert 0 < knows.mean() < 1
    assert router_error(make(certainty=knows)).item() == 0.0
    assert router_error(make(certainty=1 - knows)).item() == 1.0


def test_the_first_exit_that_is_left() -> None:
    leaves = torch.tensor([[0, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 1]]).bool()
    assert first_exit(leaves).tolist() == [4, 2, 1, 2, 3]
    assert first_exit(leaves[:, :0]).tolist() == [1] * 5  # one exit alone
