"""The router that learns by trying: rewards, walks, and the gradient they give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from de3bert.exits.policy import Policy
from de3bert.exits.replay import replay
from de3bert.exits.trace import Trace
from de3bert.objective import Clock, ExitBatch
from de3bert.objective.per_row import cross_entropies
from de3bert.objective.policy_gradient import (
    SALT,
    policy_gradient,
    policy_loss,
    sampled_cross_entropy,
)
from de3bert.objective.reward import memorised_layer, reward
from de3bert.objective.rollouts import exit_chances, log_probability, roll_out


def test_known_reward() -> None:
    found = reward(torch.tensor(0.2), torch.tensor(3), torch.tensor(6), 12, 0.05)
    assert found.item() == pytest.approx(-0.275)


def test_hard_rows_pay_nothing_and_easy_ones_most() -> None:
    losses, taken = torch.zeros(3), torch.full((3,), 4)
    found = reward(losses, taken, torch.tensor([1, 6, 12]), 12, 0.1)
    assert found.tolist() == pytest.approx([-0.4 * 11 / 12, -0.2, 0.0])


def as_trace(correct: Tensor) -> Trace:
    """Two classes of which the second is right; (rows, exits) bool."""
    rows, exits = correct.shape
    return Trace(
        logits=torch.stack([~correct, correct], -1).float().numpy(),
        distances=None,
        labels=np.ones(rows, dtype=np.int64),
        tokens=np.ones(rows, dtype=np.int32),
        exit_layers=tuple(range(1, exits + 1)),
        label_names=("wrong", "right"),
    )


@pytest.mark.parametrize(
    ("pattern", "oracle", "memorised"),
    [("1011", 1, 3), ("0000", 4, 4), ("1111", 1, 1), ("0100", 2, 4), ("0110", 2, 4)],
)
def test_known_oracle_and_memorised_layers(pattern, oracle, memorised) -> None:
    correct = torch.tensor([[mark == "1" for mark in pattern]])
    assert replay(as_trace(correct), Policy.parse("oracle")).exit_layers.tolist() == [oracle]
    assert memorised_layer(correct).tolist() == [memorised]


def test_memorised_layers_against_a_loop() -> None:
    every = torch.cartesian_prod(*[torch.tensor([False, True])] * 6)
    expected = []
    for row in every.tolist():
        from_here = [m + 1 for m in range(6) if all(row[m:])]
        expected.append(min(from_here, default=6))
    assert memorised_layer(every).tolist() == expected


def test_the_memorised_layer_is_never_before_the_oracle() -> None:
    every = torch.cartesian_prod(*[torch.tensor([False, True])] * 4)
    oracle = replay(as_trace(every), Policy.parse("oracle")).exit_layers
    assert (memorised_layer(every).numpy() >= oracle).all()


def test_walks_leave_with_the_chance_given() -> None:
    leave = torch.tensor([[0.2, 0.5], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    taken = roll_out(leave, 20_000, torch.Generator().manual_seed(0))
    assert taken.shape == (20_000, 4)
    shares = torch.stack([(taken == exit).float().mean(0) for exit in (1, 2, 3)], 1)
    expected = [[0.2, 0.4, 0.4], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    torch.testing.assert_close(shares, torch.tensor(expected).float(), atol=0.015, rtol=0)
    assert torch.equal(shares[1:], torch.tensor(expected[1:]).float())


def test_the_chance_of_a_walk() -> None:
    leave = torch.tensor([[0.2, 0.5, 0.9]], requires_grad=True)
    taken = torch.tensor([[1], [2], [3], [4]])
    found = log_probability(leave, taken)
    expected = [0.2, 0.8 * 0.5, 0.8 * 0.5 * 0.9, 0.8 * 0.5 * 0.1]
    assert found.exp().flatten().tolist() == pytest.approx(expected)
    assert sum(expected) == pytest.approx(1.0)
    (slope,) = torch.autograd.grad(found[1, 0], leave)
    assert slope.tolist() == [pytest.approx([-1 / 0.8, 1 / 0.5, 0.0])]


@pytest.mark.parametrize("chance", [0.0, 1.0, 1e-40])
def test_impossible_walks_have_a_finite_logarithm(chance) -> None:
    leave = torch.tensor([[chance, chance]], requires_grad=True)
    value = log_probability(leave, torch.tensor([[1], [2], [3]]))
    value.sum().backward()
    assert value.isfinite().all()
    assert leave.grad.isfinite().all()


def slow_policy(batch: ExitBatch, rollouts: int, price: float) -> tuple[float, float]:
    """Policy loss and cross-entropy at the exits taken, one walk at a time."""
    rows, exits = batch.exit_logits.shape[:2]
    shape = (rollouts, rows, exits - 1)
    draws = torch.rand(shape, generator=batch.clock.generator(SALT)).tolist()
    losses = cross_entropies(batch.exit_logits, batch.labels).tolist()
    total = paid = 0.0
    for row in range(rows):
        memorised, walks = batch.extras["memorised"][row].item(), []
        for walk in range(rollouts):
            taken, log_chance = exits, 0.0
            for m in range(exits - 1):
                chance = batch.certainty[row, m].item()
                if draws[walk][row][m] < chance:
                    taken, log_chance = m + 1, log_chance + math.log(chance)
                    break
                log_chance += math.log(1 - chance)
            loss = losses[row][taken - 1]
            walks.append((-loss - price * taken * (1 - memorised / exits), log_chance))
            paid += loss
        baseline = sum(worth for worth, _ in walks) / rollouts
        total += sum((worth - baseline) * log_chance for worth, log_chance in walks)
    return -total / (rows * rollouts), paid / (rows * rollouts)


@pytest.mark.parametrize(("options", "rollouts", "price"), [({}, 8, 0.05), (None, 3, 0.4)])
def test_against_a_loop(make, options, rollouts, price) -> None:
    options = {"rollouts": float(rollouts), "a": price} if options is None else options
    batch = make(rows=5, options=options, clock=Clock(step=2, total=5, seed=9))
    policy, sampled = slow_policy(batch, rollouts, price)
    assert policy_gradient(batch).item() == pytest.approx(policy, abs=1e-5)
    assert sampled_cross_entropy(batch).item() == pytest.approx(sampled, abs=1e-5)


def test_the_chances_of_exits() -> None:
    found = exit_chances(torch.tensor([[0.2, 0.5, 0.9], [0.0, 1.0, 0.3]]))
    expected = [[0.2, 0.8 * 0.5, 0.8 * 0.5 * 0.9, 0.8 * 0.5 * 0.1], [0.0, 1.0, 0.0, 0.0]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_evaluation_counts_all_walks_by_their_chance(make) -> None:
    batch = make(rows=5, options={"a": 0.4}, training=False)
    losses = cross_entropies(batch.exit_logits, batch.labels).tolist()
    worth = paid = 0.0
    for row in range(5):
        still_there, memorised = 1.0, batch.extras["memorised"][row].item()
        for taken in (1, 2, 3, 4):
            leaves = batch.certainty[row, taken - 1].item() if taken < 4 else 1.0
            loss = losses[row][taken - 1]
            worth += still_there * leaves * (-loss - 0.4 * taken * (1 - memorised / 4))
            paid += still_there * leaves * loss
            still_there *= 1 - leaves
    assert policy_gradient(batch).item() == pytest.approx(-worth / 5, abs=1e-5)
    assert sampled_cross_entropy(batch).item() == pytest.approx(paid / 5, abs=1e-5)


def test_many_walks_give_the_slope_of_the_expected_reward(make) -> None:
    count = 60_000
    batch = make(rows=2, seed=3, options={"rollouts": float(count), "a": 0.3})
    policy_gradient(batch).backward()
    leave = batch.certainty.detach().clone().requires_grad_()
    exits = torch.arange(1, 5)[:, None].expand(4, 2)
    losses = cross_entropies(batch.exit_logits, batch.labels).detach().T
    worth = reward(losses, exits, batch.extras["memorised"], 4, 0.3)
    chances = log_probability(leave, exits).exp()
    (-(chances * worth).sum(0).mean()).backward()
    scale = leave.grad.abs().max().item()
    torch.testing.assert_close(batch.certainty.grad, leave.grad, atol=0.03 * scale, rtol=0)


def test_a_good_walk_becomes_likelier() -> None:
    leave = torch.tensor([[0.5]], requires_grad=True)
    taken = torch.tensor([[1], [2]])
    policy_loss(torch.tensor([[-0.1], [-0.9]]), log_probability(leave, taken)).backward()
    assert leave.grad.item() < 0  # a step against the slope raises the chance to leave early


def test_equal_rewards_teach_nothing(make) -> None:
    logits = torch.zeros(3, 4, 3)
    batch = make(rows=3, exit_logits=logits, options={"a": 0.0})
    policy_gradient(batch).backward()
    assert batch.certainty.grad.abs().max().item() < 1e-5


def test_sure_routers_train_the_exit_they_take(make) -> None:
    sure = torch.tensor([[0.0, 1.0, 0.0]]).expand(6, -1)
    batch = make(certainty=sure)
    found = sampled_cross_entropy(batch)
    expected = cross_entropies(batch.exit_logits, batch.labels)[:, 1].mean()
    torch.testing.assert_close(found, expected)
    found.backward()
    assert [bool(batch.exit_logits.grad[:, m].any()) for m in range(4)] == [0, 1, 0, 0]
