"""Exits that teach each other: values, weights, and the gradient of the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from de3bert.objective import ExitBatch
from de3bert.objective.learned_distillation import LearnedDistillation, mutual_distillation

Array = NDArray[np.float64]
ROWS, EXITS = 6, 4


def log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def softmax(logits: Array) -> Array:
    return np.exp(log_softmax(logits))


def pair_list(learn_from: str) -> list[tuple[int, int]]:
    every = [(m, t) for m in range(EXITS) for t in range(EXITS) if m != t]
    return [pair for pair in every if learn_from == "all" or pair[1] > pair[0]]


class Slow:
    """The loss in float64, one pair of exits at a time, with gradients worked out by hand."""

    def __init__(self, batch: ExitBatch, learn_from: str, total: float, temperature: float) -> None:
        self.logits = batch.exit_logits.detach().double().numpy()
        self.labels = batch.labels.numpy()
        self.pairs, self.total, self.temperature = pair_list(learn_from), total, temperature

    def weights(self, omega: Array) -> tuple[Array, Array]:
        return softmax(omega[:EXITS]), self.total * softmax(omega[EXITS:])

    def per_row(self, logits: Array, omega: Array) -> Array:
        """L of every row, (rows,)."""
        own, taught = self.weights(omega)
        total = np.zeros(len(self.labels))
        for row, label in enumerate(self.labels):
            for m in range(EXITS):
                total[row] -= own[m] * log_softmax(logits[row, m])[label]
            for weight, (m, t) in zip(taught, self.pairs, strict=True):
                teacher = log_softmax(logits[row, t] / self.temperature)
                student = log_softmax(logits[row, m] / self.temperature)
                kl = (np.exp(teacher) * (teacher - student)).sum()
                total[row] += weight * self.temperature**2 * kl
        return total

    def slope(self, logits: Array, omega: Array, rows: Array) -> Array:
        """d(rows . L) / d logits with teachers constant, (rows, exits, classes)."""
        own, taught = self.weights(omega)
        found = np.zeros_like(logits)
        for row, label in enumerate(self.labels):
            for m in range(EXITS):
                found[row, m] += own[m] * (softmax(logits[row, m]) - np.eye(3)[label])
            for weight, (m, t) in zip(taught, self.pairs, strict=True):
                student = softmax(logits[row, m] / self.temperature)
                teacher = softmax(logits[row, t] / self.temperature)
                found[row, m] += weight * self.temperature * (student - teacher)
        return rows[:, None, None] * found


def disturbed(loss: LearnedDistillation) -> Array:
    """Moves the weights away from where they start; returns all scores in one row."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for scores in (loss.exit_scores, loss.pair_scores):
            scores.add_(torch.randn(scores.shape, generator=generator))
    both = torch.cat([loss.exit_scores, loss.pair_scores])
    return both.detach().double().numpy()


def slope_of(loss: LearnedDistillation) -> Array:
    return torch.cat([loss.exit_scores.grad, loss.pair_scores.grad]).double().numpy()


def finite_differences(function, omega: Array) -> Array:
    step = 1e-5
    found = np.zeros_like(omega)
    for index in range(len(omega)):
        nudge = step * np.eye(len(omega))[index]
        found[index] = (function(omega + nudge) - function(omega - nudge)) / (2 * step)
    return found


def halves(kind: str) -> tuple[Array, Array, Array]:
    """Weights of rows in the one half, in the other, and for the model; rows are 0 to 5."""
    every = np.full(ROWS, 1 / ROWS)
    if kind == "none":
        return every, every, every
    even = np.array([1, 0, 1, 0, 1, 0])
    return even / 3, (1 - even) / 3, even / 3 if kind == "fixed" else every


@pytest.mark.parametrize("learn_from", ["all", "later"])
def test_where_the_weights_start(learn_from) -> None:
    loss = LearnedDistillation(EXITS, {"from": learn_from, "kd": 0.6})
    own, taught = loss.weights()
    assert own.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    pairs = pair_list(learn_from)
    expected = np.zeros((EXITS, EXITS))
    for pair in pairs:
        expected[pair] = 0.6 / len(pairs)
    np.testing.assert_allclose(taught.detach().numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("learn_from", ["all", "later"])
def test_weights_keep_their_sums_and_signs(learn_from) -> None:
    loss = LearnedDistillation(EXITS, {"from": learn_from, "kd": 2.0})
    disturbed(loss)
    own, taught = loss.weights()
    assert own.sum().item() == pytest.approx(1.0)
    assert taught.sum().item() == pytest.approx(2.0)
    assert own.min() > 0
    assert all(taught[pair] > 0 for pair in pair_list(learn_from))


def test_one_exit_has_nobody_to_learn_from(make) -> None:
    batch = make(exits=1)
    expected = torch.nn.functional.cross_entropy(batch.exit_logits[:, 0], batch.labels)
    torch.testing.assert_close(LearnedDistillation(1, {})(batch), expected)


def test_known_distillation() -> None:
    logits = torch.tensor([[[1.0, 0.5, 0.0], [2.0, 0.0, -1.0]]])
    found = mutual_distillation(logits, 2.0)[0]
    assert found[0, 1].item() == pytest.approx(0.365228, abs=1e-6)  # exit 1 learns from exit 2
    assert found.diagonal().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("learn_from", ["all", "later"])
@pytest.mark.parametrize("kind", ["none", "fixed", "crossed"])
def test_value_and_the_models_gradient_against_a_loop(make, learn_from, kind) -> None:
    options = {"from": learn_from, "halves": kind, "kd": 0.7, "temperature": 3.0, "rho": 0.5}
    loss, batch = LearnedDistillation(EXITS, options), make()
    omega, (*_, ours) = disturbed(loss), halves(kind)
    slow = Slow(batch, learn_from, 0.7, 3.0)
    value = loss(batch)
    assert value.item() == pytest.approx(ours @ slow.per_row(slow.logits, omega), abs=1e-5)
    value.backward()
    expected = slow.slope(slow.logits, omega, ours)
    np.testing.assert_allclose(batch.exit_logits.grad.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "fixed", "crossed"])
def test_the_weights_gradient_is_that_of_their_own_rows(make, kind) -> None:
    options = {"halves": kind, "rho": 0.3, "temperature": 1.5, "unroll": 0.0}
    loss, batch = LearnedDistillation(EXITS, options), make()
    omega, (first, second, _) = disturbed(loss), halves(kind)
    held_out = second if kind == "none" else second + 0.3 * first
    slow = Slow(batch, "all", 1.0, 1.5)
    loss(batch).backward()
    expected = finite_differences(lambda o: held_out @ slow.per_row(slow.logits, o), omega)
    np.testing.assert_allclose(slope_of(loss), expected, atol=1e-5)


@pytest.mark.parametrize("learn_from", ["all", "later"])
@pytest.mark.parametrize("kind", ["none", "fixed", "crossed"])
def test_the_unrolled_gradient_is_the_finite_difference(make, learn_from, kind) -> None:
    """Omega -> a step of the heads on one half -> the loss of the other, in float64 by hand."""
    rate, rho = 0.8, 0.25
    options = {"from": learn_from, "halves": kind, "rho": rho, "unroll": 1.0, "inner_rate": rate}
    loss, batch = LearnedDistillation(EXITS, options), make()
    omega, (first, second, _) = disturbed(loss), halves(kind)
    slow = Slow(batch, learn_from, 1.0, 2.0)
    states = batch.states.detach().double().numpy()
    weight = np.stack([part.weight.detach().double().numpy() for part in batch.heads.exits])
    bias = np.stack([part.bias.detach().double().numpy() for part in batch.heads.exits])

    def read(weight: Array, bias: Array) -> Array:
        return np.einsum("rmh,mkh->rmk", states, weight) + bias

    def after(o: Array, learned: Array, held_out: Array) -> float:
        slope = slow.slope(read(weight, bias), o, learned)
        logits = read(
            weight - rate * np.einsum("rmk,rmh->mkh", slope, states), bias - rate * slope.sum(0)
        )
        own = -log_softmax(logits)[np.arange(ROWS), :, batch.labels.numpy()]  # (rows, exits)
        return held_out @ own @ (np.arange(1, EXITS + 1) / 10)

    def held_out_loss(o: Array) -> float:
        other = after(o, second, first) if kind != "none" else 0.0
        return after(o, first, second) + rho * other

    value = loss(batch)
    plain = LearnedDistillation(EXITS, {**options, "unroll": 0.0})
    plain.load_state_dict(loss.state_dict())
    assert value.item() == plain(batch).item()  # the value does not know of the step
    value.backward()
    expected = finite_differences(held_out_loss, omega)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(slope_of(loss), expected, atol=2e-6)


def test_the_models_gradient_does_not_depend_on_how_weights_learn(make) -> None:
    slopes = []
    for unroll in (0.0, 1.0):
        batch = make()
        LearnedDistillation(EXITS, {"unroll": unroll})(batch).backward()
        slopes.append(batch.exit_logits.grad)
    assert torch.equal(slopes[0], slopes[1])


def test_first_order_weights_leave_the_large_parts(make) -> None:
    """Without unrolling, a step raises the weight of the exit with the smallest loss."""
    logits = torch.zeros(3, 4, 3)
    logits[range(3), 2, range(3)] = 4.0  # exit 3 is right
    batch = make(rows=3, exit_logits=logits.requires_grad_(), labels=torch.arange(3))
    loss = LearnedDistillation(EXITS, {"kd": 0.0, "halves": "none", "unroll": 0.0})
    loss(batch).backward()
    assert loss.exit_scores.grad.argmin().item() == 2
    assert loss.exit_scores.grad[2] < 0 < loss.exit_scores.grad[3]


def weights_over_training(steps: int, **options: float | str) -> Array:
    """w after every 50 steps of linear heads that read more and more telling states, (times, 6)."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (600,), generator=generator)
    telling = torch.linspace(0.05, 0.4, 6)[:, None] * torch.randn(6, 16, generator=generator)
    states = (
        torch.randn(600, 6, 16, generator=generator) + (2 * labels - 1)[:, None, None] * telling
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        heads = nn.Module()
        heads.exits = nn.ModuleList(nn.Linear(16, 2) for _ in range(6))
    loss = LearnedDistillation(6, options)
    optimizer = torch.optim.Adam(
        [{"params": heads.parameters(), "lr": 1e-2}, {"params": loss.parameters(), "lr": 1e-2}]
    )
    seen = [loss.weights()[0].tolist()]
    for step in range(steps):
        rows = torch.randint(0, 600, (32,), generator=generator)
        logits = torch.stack([e(states[rows, m]) for m, e in enumerate(heads.exits)], dim=1)
        batch = ExitBatch(
            logits, labels[rows], None, {}, states=states[rows], heads=heads, extras={"row": rows}
        )
        optimizer.zero_grad()
        loss(batch).backward()
        optimizer.step()
        if step % 50 == 49:
            seen.append(loss.weights()[0].tolist())
    return np.array(seen)


def test_weights_over_training_do_not_collapse() -> None:
    """Held-out halves keep all exits alive, where the loss's own gradient ends with one of them."""
    start = np.arange(1, 7) / 21
    kept = weights_over_training(800)
    np.testing.assert_allclose(kept[0], start, atol=1e-6)
    assert (kept / start).min() > 0.3
    assert (kept / start).max() < 2.0
    assert np.abs(kept[4] - start).max() > 0.05  # they do learn
    lost = weights_over_training(500, halves="none", unroll=0.0)
    assert (lost[-1] / start).min() < 0.1
    assert (np.diff(lost.max(axis=1)) > 0).all()  # and there is no end to it


@pytest.mark.parametrize("rows", [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]])
@pytest.mark.parametrize("unroll", [0.0, 1.0])
def test_a_batch_of_one_half_alone(make, rows, unroll) -> None:
    options = {"halves": "fixed", "rho": 0.0, "unroll": unroll}
    loss, batch = LearnedDistillation(EXITS, options), make()
    value = loss(replace(batch, extras={"row": torch.tensor(rows)}))
    value.backward()
    mine = rows[0] == 0  # all rows are the model's, or none is
    assert (value.item() > 0) == mine
    assert bool(batch.exit_logits.grad.any()) == mine
    if unroll == 0.0:
        assert bool(loss.exit_scores.grad.any()) == (not mine)
    else:  # without a step on the one half, or a look at the other, there is nothing to learn
        assert not loss.exit_scores.grad.any()


def test_evaluation_reads_all_rows_and_needs_no_numbers(make) -> None:
    batch = make(training=False, extras={})
    loss = LearnedDistillation(EXITS, {"halves": "fixed", "unroll": 1.0})
    with torch.no_grad():
        found = loss(replace(batch, heads=None, states=None))
    whole = LearnedDistillation(EXITS, {"halves": "none", "unroll": 0.0})(batch)
    assert found.item() == pytest.approx(whole.item())


def test_the_weights_learn_nothing_from_evaluation(make) -> None:
    loss = LearnedDistillation(EXITS, {})
    loss(make(training=False)).backward()
    assert loss.exit_scores.grad is None
    assert loss.pair_scores.grad is None


def test_without_gradients_the_value_is_the_same(make) -> None:
    loss, batch = LearnedDistillation(EXITS, {"unroll": 1.0}), make()
    with torch.no_grad():
        silent = loss(batch)
    assert silent.item() == loss(batch).item()


def test_weights_are_saved(make) -> None:
    loss, batch = LearnedDistillation(EXITS, {}), make()
    disturbed(loss)
    again = LearnedDistillation(EXITS, {})
    again.load_state_dict(loss.state_dict())
    assert again(batch).item() == loss(batch).item()
    assert len(dict(loss.named_parameters())) == 2
