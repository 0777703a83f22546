"""The fused heads of GPFEE: past, predicted future and the gate between them."""

from __future__ import annotations

import math

import pytest
import torch
from tests.model.readings import (
    CLASSES,
    EXITS,
    HIDDEN,
    LENGTHS,
    affine,
    gradient,
    made_heads,
    made_reading,
)
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.model.fused_head import FusedHeads, blend
from de3bert.model.heads import HEADS, HeadSettings, Reading
from de3bert.model.pooling import POOLINGS
from de3bert.objective import Clock

EACH_EXIT = pytest.mark.parametrize("index", range(EXITS))


def fused(*, dropout: float = 0.1, **options: float) -> FusedHeads:
    heads = made_heads("fused", dropout=dropout, **options)
    assert isinstance(heads, FusedHeads)
    return heads


def without_gate(heads: FusedHeads) -> FusedHeads:
    """A gate of 1/2 everywhere."""
    nn.init.zeros_(heads.gate.weight)
    nn.init.zeros_(heads.gate.bias)
    return heads


def plain(heads: FusedHeads, exit_index: int, vectors: Tensor) -> Tensor:
    """What a linear head would give that has the logit half of an exit's projection."""
    weight = heads.projections[exit_index].get_parameter("weight")[:CLASSES]
    bias = heads.projections[exit_index].get_parameter("bias")[:CLASSES]
    return nn.functional.linear(vectors, weight, bias)


def slow(heads: FusedHeads, reading: Reading, index: int, row: int) -> list[float]:
    """The formulas of `FusedHeads`, one number at a time."""
    own = reading.pooled[row].tolist()
    vectors = ([] if reading.memory is None else reading.memory[row].tolist()) + [own]
    for target in range(index + 1, EXITS):
        vectors.append([math.tanh(x) for x in affine(heads.predictors[target], own)])
    outputs = [affine(heads.projections[j], vector) for j, vector in enumerate(vectors)]
    means = [
        math.tanh(sum(output[CLASSES + k] for output in outputs[: index + 1]) / (index + 1))
        for k in range(CLASSES)
    ]
    gate = [1 / (1 + math.exp(-x)) for x in affine(heads.gate, means)]
    past = [sum(output[k] for output in outputs[: index + 1]) for k in range(CLASSES)]
    future = [sum(output[k] for output in outputs[index + 1 :]) for k in range(CLASSES)]
    return [2 * gate[k] * past[k] + (2 - 2 * gate[k]) * future[k] for k in range(CLASSES)]


def test_the_gate_blends_past_and_future() -> None:
    past, future = torch.tensor([[1.0, -0.5]]), torch.tensor([[0.4, 0.2]])
    blended = blend(past, future, torch.tensor([[0.6, 0.5]]))
    torch.testing.assert_close(blended, torch.tensor([[1.52, -0.30]]))


@EACH_EXIT
def test_it_matches_the_formula_one_number_at_a_time(index: int) -> None:
    heads, reading = fused(), made_reading(index, memory=True)
    expected = [slow(heads, reading, index, row) for row in range(len(LENGTHS))]
    torch.testing.assert_close(heads(reading, index), torch.tensor(expected))


# Without a future


@EACH_EXIT
def test_without_future_it_is_the_gated_sum_of_plain_heads(index: int) -> None:
    """z_i = 2 gate (sum over j <= i of the plain head j); the predictors have no part in it."""
    heads, reading = fused(future=0.0), made_reading(index, memory=True)
    vectors = reading.vectors(index)
    past = sum(plain(heads, j, vectors[:, j]) for j in range(index + 1))
    hints = [heads.projections[j](vectors[:, j])[:, CLASSES:] for j in range(index + 1)]
    gate = torch.sigmoid(heads.gate(torch.tanh(torch.stack(hints).mean(0))))
    answer = heads(reading, index)
    torch.testing.assert_close(answer, 2 * gate * past)
    nn.init.constant_(heads.predictors[-1].get_parameter("weight"), 9.0)
    assert torch.equal(heads(reading, index), answer)


def test_without_future_and_gate_the_first_exit_is_a_plain_head() -> None:
    heads, reading = without_gate(fused(future=0.0)), made_reading(0, memory=True)
    torch.testing.assert_close(heads(reading, 0), plain(heads, 0, reading.pooled))


def test_the_last_exit_has_no_future_to_leave_out() -> None:
    reading = made_reading(EXITS - 1, memory=True)
    with_future, without = fused(future=1.0), fused(future=0.0)
    assert torch.equal(with_future(reading, EXITS - 1), without(reading, EXITS - 1))
    first = made_reading(0, memory=True)
    assert not torch.allclose(with_future(first, 0), without(first, 0))


@pytest.mark.parametrize("value", [0.5, -1.0, math.nan, "yes"])
def test_a_future_in_part_is_refused(value: float | str) -> None:
    with pytest.raises(UsageError, match=r"predicted vectors.*got"):
        HEADS["fused"](HeadSettings(HIDDEN, CLASSES, EXITS, 0.1, {"future": value}))


# What learns


@pytest.mark.parametrize("training", [True, False])
def test_the_past_does_not_learn_from_a_later_exit(training: bool) -> None:
    heads, reading = fused().train(training), made_reading(2, memory=True)
    assert reading.memory is not None
    reading.memory.requires_grad_()
    reading.pooled.requires_grad_()
    heads(reading, 2).square().sum().backward()
    assert reading.memory.grad is None
    assert gradient(reading.pooled) > 0
    assert all(gradient(parameter) > 0 for parameter in heads.projections.parameters())
    assert gradient(heads.gate.weight) > 0
    learning = [gradient(heads.predictors[j].get_parameter("weight")) > 0 for j in range(EXITS)]
    assert learning == [False, False, False, True]


def test_the_own_vector_learns_through_the_predicted_ones() -> None:
    heads, reading = fused(), made_reading(0, memory=True)
    reading.pooled.requires_grad_()
    for projection in heads.projections[:1]:
        nn.init.zeros_(projection.get_parameter("weight"))  # closes the direct way
    heads(reading, 0).square().sum().backward()
    assert gradient(reading.pooled) > 0


def test_dropout_falls_on_every_vector_but_not_on_what_predicts() -> None:
    heads, reading = fused(dropout=1.0).train(), made_reading(1, memory=True)
    seen: list[Tensor] = []
    heads.predictors[3].register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    answer = heads(reading, 1)
    assert torch.equal(seen[0], reading.pooled)
    biases = torch.stack([layer.get_parameter("bias") for layer in heads.projections])
    hints = biases[:2, CLASSES:].mean(0)
    gate = torch.sigmoid(heads.gate(torch.tanh(hints)))
    alone = blend(biases[:2, :CLASSES].sum(0), biases[2:, :CLASSES].sum(0), gate)
    torch.testing.assert_close(answer, alone.expand_as(answer))


# Predicted vectors, for the imitation loss


def test_futures_are_the_predictions_of_every_later_exit() -> None:
    heads, states = fused(), torch.randn(2, EXITS, HIDDEN)
    predicted = heads.futures(states)
    assert predicted.shape == (2, EXITS, EXITS, HIDDEN)
    for source in range(EXITS):
        for target in range(EXITS):
            guess = torch.tanh(heads.predictors[target](states[:, source]))
            expected = guess if target > source else torch.zeros_like(guess)
            torch.testing.assert_close(predicted[:, source, target], expected)


def test_futures_teach_their_sources_and_all_predictors() -> None:
    heads, states = fused(), torch.randn(2, EXITS, HIDDEN, requires_grad=True)
    heads.futures(states).square().sum().backward()
    assert states.grad is not None
    assert (states.grad.abs().amax((0, 2)) > 0).tolist() == [True, True, True, False]
    weights = [layer.get_parameter("weight") for layer in heads.predictors]
    assert [gradient(weight) > 0 for weight in weights] == [False, True, True, True]
    assert weights[0].grad is not None  # 0, not missing: distributed training waits for it


# Sizes


@pytest.mark.parametrize(("classes", "expected"), [(2, 14_211_126), (3, 14_229_588)])
def test_parameters_with_own_poolers_are_the_published_ones(classes: int, expected: int) -> None:
    with torch.device("meta"):
        heads = HEADS["fused"](HeadSettings(768, classes, 12, 0.1, {}))
        poolers = POOLINGS["own_pooler"](768, 12)
    together = [*heads.parameters(), *poolers.parameters()]
    assert sum(parameter.numel() for parameter in together) == expected
    final = (768 * 2 * classes + 2 * classes) + (classes * classes + classes)
    assert heads.internal_parameters() == expected - 12 * 590_592 - final


def test_the_lowest_layers_thaw_in_the_course_of_a_training() -> None:
    heads = fused(thaw=2.0)
    states = torch.ones(2, 3, HIDDEN, requires_grad=True)

    def share(layer: int, progress: float) -> float:
        clocks = [Clock(int(progress * 100), 100, seed=seed) for seed in range(200)]
        kept = [heads.handed_on(states, layer, clock) for clock in clocks]
        assert all(torch.equal(each, states) for each in kept)
        return sum(each.requires_grad for each in kept) / len(kept)

    for layer in (1, 2):
        assert share(layer, 0.0) == 0.0
        assert share(layer, 0.5) == pytest.approx(0.5, abs=0.12)
        assert share(layer, 1.0) == 1.0
    assert share(3, 0.0) == 1.0  # above `thaw` nothing is cut


def test_other_heads_hand_the_states_on_unchanged() -> None:
    states = torch.ones(1, 2, HIDDEN)
    for name in HEADS:
        assert made_heads(name).handed_on(states, 1, Clock()) is states
