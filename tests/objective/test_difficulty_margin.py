"""Easy rows must be surer than hard ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from de3bert.exits.signals.formulas import max_probability
from de3bert.objective import Clock
from de3bert.objective.difficulty_margin import SALT, difficulty_margin, margin_ranking


def test_known_margin() -> None:
    assert margin_ranking(torch.tensor([0.7]), torch.tensor([0.6]), 0.5).item() == pytest.approx(
        0.4
    )
    apart = margin_ranking(torch.tensor([0.9]), torch.tensor([0.3]), 0.5)
    assert apart.item() == 0.0
    pairs = margin_ranking(torch.tensor([0.7, 0.9]), torch.tensor([0.6, 0.3]), 0.5)
    assert pairs.item() == pytest.approx(0.2)


@pytest.mark.parametrize("margin", [None, 0.1])
def test_against_a_loop(make, margin) -> None:
    clock = Clock(step=4, total=10, seed=1)
    batch = make(rows=11, clock=clock, options={} if margin is None else {"margin": margin})
    difficult = batch.extras["difficult"].tolist()
    sure = max_probability(batch.exit_logits[:, 0]).tolist()
    easy = [c for c, hard in zip(sure, difficult, strict=True) if not hard]
    hard = [c for c, hard in zip(sure, difficult, strict=True) if hard]
    draws = torch.randint(len(hard), (len(easy),), generator=clock.generator(SALT)).tolist()
    gaps = [c - hard[draw] for c, draw in zip(easy, draws, strict=True)]
    expected = sum(max(0.0, (margin or 0.5) - gap) for gap in gaps) / len(gaps)
    assert difficulty_margin(batch).item() == pytest.approx(expected, abs=1e-6)


def test_partners_change_from_step_to_step(make) -> None:
    values = {difficulty_margin(make(clock=Clock(step, 50))).item() for step in range(20)}
    assert len(values) > 3


@pytest.mark.parametrize("difficult", [True, False])
def test_one_kind_of_rows_is_skipped(make, difficult) -> None:
    batch = make()
    batch = replace(batch, extras={"difficult": torch.full((6,), difficult)})
    value = difficulty_margin(batch)
    assert value.item() == 0.0
    value.backward()  # a step whose only term is skipped can still go backward
    assert not batch.exit_logits.grad.any()
