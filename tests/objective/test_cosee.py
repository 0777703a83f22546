"""Sample weighting and signal calibration."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from de3bert.exits.signals.formulas import energy
from de3bert.objective import Clock, ExitBatch
from de3bert.objective.per_row import cross_entropies
from de3bert.objective.signal_calibration import calibration_error, signal_calibration
from de3bert.objective.weighted_cross_entropy import (
    SALT,
    WeightedCrossEntropy,
    closeness,
    simulated_exits,
)

SIGNALS = torch.tensor([[0.4, 0.25, 0.1], [0.6, 0.5, 0.45]])


def test_known_weights() -> None:
    expected = {
        (2, 1.0): [0.196612, 0.534447, 0.196612, 0.072329],
        (4, 1.0): [0.032059, 0.087144, 0.236883, 0.643914],
        (3, 0.0): [0.25] * 4,
    }
    for (taken, sharpness), weights in expected.items():
        found = closeness(torch.tensor(taken), 4, sharpness)
        assert found.tolist() == pytest.approx(weights, abs=1e-6)


def test_weights_sum_to_one_and_peak_at_the_exit() -> None:
    taken = torch.arange(1, 13)
    for sharpness in (0.05, 0.2, 1.0, 10.0, 1e4):
        weights = closeness(taken, 12, sharpness)
        torch.testing.assert_close(weights.sum(-1), torch.ones(12))
        assert torch.equal(weights.argmax(-1), taken - 1)


def test_known_exits() -> None:
    thresholds = torch.tensor([0.2, 0.3, 0.47, 0.7])
    assert simulated_exits(SIGNALS, thresholds).tolist() == [[3, 4], [2, 4], [1, 3], [1, 1]]


def test_a_signal_on_the_threshold_does_not_leave() -> None:
    assert simulated_exits(torch.tensor([[0.5, 0.4]]), torch.tensor([0.5])).tolist() == [[2]]
    assert simulated_exits(torch.tensor([[0.5, 0.4]]), torch.tensor([0.0])).tolist() == [[3]]


def test_known_weighted_loss() -> None:
    losses = torch.tensor([[0.9, 0.5, 0.3, 0.2], [1.2, 1.0, 0.8, 0.6]])
    weights = closeness(simulated_exits(SIGNALS, torch.tensor([0.3])), 4, 1.0)
    assert (weights * losses).sum(-1).mean().item() == pytest.approx(0.609546, abs=1e-6)


def slow_weighted(batch: ExitBatch, thresholds: list[float], sharpness: float) -> float:
    """One threshold, row and exit at a time, in the words of the definition."""
    losses = cross_entropies(batch.exit_logits, batch.labels).tolist()
    total = 0.0
    for tau in thresholds:
        for row, logits in enumerate(batch.exit_logits.tolist()):
            exits = len(logits)
            signals = [1 / (1 + sum(math.exp(z) for z in exit)) for exit in logits]
            taken = next((m for m in range(exits - 1) if signals[m] < tau), exits - 1)
            weights = [math.exp(-sharpness * abs(m - taken)) for m in range(exits)]
            pairs = zip(weights, losses[row], strict=True)
            total += sum(w * loss for w, loss in pairs) / sum(weights)
    return total / len(thresholds) / len(losses)


@pytest.mark.parametrize(("options", "b0", "count"), [({}, 1.0, 5), (None, 3.0, 2)])
def test_the_loss_against_a_loop(make, options, b0, count) -> None:
    options = {"b0": b0, "thresholds": float(count)} if options is None else options
    clock = Clock(step=7, total=10, seed=3)
    batch = make(rows=9, clock=clock)
    shares = torch.rand(count, generator=clock.generator(SALT)).tolist()  # of [0, 1]
    expected = slow_weighted(batch, shares, 0.7 * b0)
    assert WeightedCrossEntropy(4, options)(batch).item() == pytest.approx(expected, abs=1e-5)


def test_the_first_step_weighs_all_exits_alike(make) -> None:
    batch = make(clock=Clock(step=0, total=10))
    plain = cross_entropies(batch.exit_logits, batch.labels).mean()
    torch.testing.assert_close(WeightedCrossEntropy(4, {"b0": 10.0})(batch), plain)


def test_thresholds_come_from_the_range_of_the_epoch_before(make) -> None:
    loss = WeightedCrossEntropy(4, {"b0": 2.0})
    first = [make(seed=seed, clock=Clock(step, 9, epoch=0)) for step, seed in enumerate([1, 2, 3])]
    for batch in first:
        loss(batch)
        assert loss.bounds.tolist() == [0.0, 1.0]
    seen = torch.cat([energy(batch.exit_logits[:, :-1].detach()).flatten() for batch in first])
    batch = make(seed=4, clock=Clock(3, 9, epoch=1))
    found = loss(batch)
    low, high = seen.min().item(), seen.max().item()
    assert loss.bounds.tolist() == [low, high]
    shares = torch.rand(5, generator=batch.clock.generator(SALT)).tolist()
    expected = slow_weighted(batch, [low + (high - low) * u for u in shares], 2.0 * 3 / 9)
    assert found.item() == pytest.approx(expected, abs=1e-5)
    # The next epoch reads the second one alone.
    loss(make(seed=5, clock=Clock(6, 9, epoch=2)))
    only = energy(batch.exit_logits[:, :-1].detach())
    assert loss.bounds.tolist() == [only.min().item(), only.max().item()]


def test_the_range_is_that_of_the_exits_before_the_last(make) -> None:
    """The final exit is never tested, and its signals do not count."""
    for last in (-5.0, 9.0):
        logits = torch.zeros(2, 4, 3)
        logits[:, 1], logits[:, -1] = 1.0, last
        loss = WeightedCrossEntropy(4, {})
        loss(make(rows=2, exit_logits=logits))
        slow = sorted(1 / (1 + 3 * math.exp(z)) for z in (0.0, 1.0))
        assert loss.seen.tolist() == pytest.approx(slow)


def test_a_new_training_begins_with_the_full_range(make) -> None:
    loss = WeightedCrossEntropy(4, {})
    for epoch in (0, 1, 2):
        loss(make(seed=epoch, clock=Clock(epoch, 3, epoch)))
    assert loss.bounds.tolist() != [0.0, 1.0]
    loss(make(clock=Clock(0, 3, 0)))
    assert loss.bounds.tolist() == [0.0, 1.0]


def test_evaluation_leaves_the_range_alone(make) -> None:
    loss = WeightedCrossEntropy(4, {})
    loss(make(clock=Clock(0, 3, 0)))
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    loss(make(seed=8, clock=Clock(1, 3, 1), training=False))
    assert all(torch.equal(before[name], value) for name, value in loss.state_dict().items())


def test_a_stopped_training_goes_on_as_if_it_had_not(make) -> None:
    batches = [make(seed=epoch, clock=Clock(epoch, 4, epoch)) for epoch in range(4)]
    whole = WeightedCrossEntropy(4, {})
    values = [whole(batch).item() for batch in batches]
    start = WeightedCrossEntropy(4, {})
    for batch in batches[:2]:
        start(batch)
    rest = WeightedCrossEntropy(4, {})
    rest.load_state_dict(start.state_dict())
    assert [rest(batch).item() for batch in batches[2:]] == values[2:]


def test_known_calibration() -> None:
    signals = torch.tensor([[0.1], [0.2], [0.15], [0.35]])
    right = torch.tensor([[True], [True], [False], [False]])
    assert calibration_error(signals, right, 0.3).item() == pytest.approx(0.2)
    assert calibration_error(signals, right, 0.05).item() == 0.0  # far enough apart


def test_exits_with_nothing_to_compare_are_left_out() -> None:
    signals = torch.tensor([[0.1, 0.9, 0.3], [0.2, 0.8, 0.4]], requires_grad=True)
    right = torch.tensor([[True, True, False], [False, True, False]])
    value = calibration_error(signals, right, 0.3)
    assert value.item() == pytest.approx(0.2)  # of the first exit alone, not divided by 3
    none = calibration_error(signals, torch.ones_like(right), 0.3)
    assert none.item() == 0.0
    none.backward()
    assert not signals.grad.any()


def slow_calibration(batch: ExitBatch, margin: float) -> float:
    gaps = []
    for m in range(batch.exit_logits.shape[1] - 1):
        easy, hard = [], []
        for logits, label in zip(batch.exit_logits[:, m].tolist(), batch.labels, strict=True):
            signal = 1 / (1 + sum(math.exp(z) for z in logits))
            (easy if logits.index(max(logits)) == label else hard).append(signal)
        if easy and hard:
            gaps.append(max(0.0, sum(easy) / len(easy) - sum(hard) / len(hard) + margin))
    return sum(gaps) / len(gaps) if gaps else 0.0


@pytest.mark.parametrize("rows", [1, 2, 4, 20])
@pytest.mark.parametrize("margin", [None, 0.01])
def test_calibration_against_a_loop(make, rows, margin) -> None:
    for seed in range(5):
        batch = make(rows=rows, seed=seed, options={} if margin is None else {"margin": margin})
        expected = slow_calibration(batch, margin or 0.3)
        assert signal_calibration(batch).item() == pytest.approx(expected, abs=1e-6)


def test_calibration_reads_energies() -> None:
    """Two rows of known energy, 0.114195 right and 0.047314 wrong."""
    logits = torch.tensor([[[2.0, -1.0], [0.0, 0.0]], [[3.0, -3.0], [0.0, 0.0]]])
    batch = ExitBatch(logits, torch.tensor([0, 1]), None, {})
    expected = 0.114195 - 0.047314 + 0.3
    assert signal_calibration(batch).item() == pytest.approx(expected, abs=1e-6)
    swapped = replace(batch, labels=torch.tensor([1, 0]))
    assert signal_calibration(swapped).item() == pytest.approx(0.6 - expected, abs=1e-6)
