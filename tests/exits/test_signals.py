"""The formulas, against golden numbers, plain Python and torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.exits import slow

from de3bert.errors import UsageError
from de3bert.exits import signals

NUMBERS = st.floats(-30, 30, width=32)
LOGITS = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=3, min_side=2), elements=NUMBERS
)


@pytest.mark.parametrize(
    ("chances", "expected"),
    [
        ([0.7, 0.2, 0.1], 0.729847),
        ([0.5, 0.5], 1.0),
        ([0.9, 0.1], 0.468996),
        ([0.99, 0.01], 0.080793),
        ([0.8, 0.2], 0.721928),
        ([0.95, 0.05], 0.286397),
        ([0.6, 0.3, 0.1], 0.817345),
        ([0.5, 0.3, 0.2], 0.937231),
        ([0.9, 0.08, 0.02], 0.341452),
    ],
)
def test_entropy_golden(chances, expected):
    assert signals.entropy(np.log([chances]))[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("logits", [[1000.0, 0.0], [200.0, -60000.0], [0.0, -np.inf]])
def test_entropy_of_a_saturated_softmax_is_zero_and_not_nan(logits, dtype):
    assert signals.entropy(np.asarray([logits], dtype=dtype)).tolist() == [0.0]


@given(LOGITS)
def test_entropy_matches_the_definition(logits):
    expected = [slow.entropy(row) for row in logits.reshape(-1, logits.shape[-1]).tolist()]
    np.testing.assert_allclose(signals.entropy(logits).ravel(), expected, atol=1e-12)


@given(LOGITS)
def test_max_probability_and_probabilities_match_the_definition(logits):
    expected = [slow.softmax(row) for row in logits.reshape(-1, logits.shape[-1]).tolist()]
    flat = signals.probabilities(logits).reshape(-1, logits.shape[-1])
    np.testing.assert_allclose(flat, expected, atol=1e-12)
    best = signals.max_probability(logits).ravel()
    np.testing.assert_allclose(best, [max(row) for row in expected], atol=1e-12)


@pytest.mark.parametrize(
    ("logits", "raw", "normalised"),
    [
        ([2, -1], -2.048587, 0.114195),
        ([0, 0], -0.693147, 1 / 3),
        ([3, -3], -3.002476, 0.047314),
        ([1, 2, 3], -3.407606, 0.032059),
        ([-2, -2], 1.306853, 0.786986),
    ],
)
def test_energy_golden(logits, raw, normalised):
    row = np.asarray([logits], dtype=np.float64)
    assert signals.energy(row, normalised=False)[0] == pytest.approx(raw, abs=1e-6)
    assert signals.energy(row)[0] == pytest.approx(normalised, abs=1e-6)


def test_energy_keeps_its_accuracy_far_out():
    values = signals.energy(np.asarray([[40.0, 0.0], [900.0, 0.0], [-900.0, -900.0]]))
    assert values[0] == pytest.approx(math.exp(-40), rel=1e-9)
    assert values[1:].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        (0.2, 0.8, 0.125),
        (0.8, 0.2, 0.875),
        (0.5, 0.5, 0.5),
        (0.0, 0.5, 0.0),
        (0.5, 0.0, 1.0),
        (0.3, 0.4, 0.375),
        (1.2, 0.3, 0.875),
        (2.0, 1.0, 0.75),
        (0.0, 0.0, 0.5),
        (-1e-8, 0.5, 0.0),
        (-1e-8, -1e-8, 0.5),
    ],
)
def test_distance_ratio_golden(near, far, expected):
    ratio = signals.distance_ratio(np.asarray([near]), np.asarray([far]))
    assert ratio[0] == pytest.approx(expected, abs=1e-12)


WEIGHTS = (0, 0.667, 1, 1.5, 2, 3, 10)


@pytest.mark.parametrize(
    ("local", "ratio", "expected"),
    [
        (
            0.729847,
            0.125,
            (0.729847, 0.248578, 0.213444, 0.186984, 0.172710, 0.157666, 0.135185),
        ),
        (0.4, 0.125, (0.4, 0.212736, 0.190476, 0.172414, 0.162162, 0.150943, 0.133333)),
        (0.4, 0.875, (0.4, 0.510991, 0.549020, 0.593220, 0.626866, 0.674699, 0.789744)),
    ],
)
def test_edr_golden(local, ratio, expected):
    found = [signals.edr(np.asarray([local]), np.asarray([ratio]), w)[0] for w in WEIGHTS]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("weight", [0.25, 1.0, 10.0, 1e308])
def test_edr_limits(weight):
    local, ratio = np.asarray([0.3, 0.0, 0.0, 0.6]), np.asarray([0.0, 0.3, 0.0, 0.6])
    np.testing.assert_allclose(signals.edr(local, ratio, weight), [0, 0, 0, 0.6], rtol=1e-12)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 100))
def test_edr_lies_between_its_parts(local, ratio, weight):
    found = float(signals.edr(np.asarray([local]), np.asarray([ratio]), weight)[0])
    if weight == 0:
        assert found == local
    else:
        assert min(local, ratio) * (1 - 1e-9) - 1e-29 <= found <= max(local, ratio) * (1 + 1e-9)


def test_nearest_two_ranks_by_logits_and_breaks_ties_by_index():
    logits = np.asarray([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0], [0.0, 2.0, 0.0]])
    distances = np.asarray([[0.1, 0.2, 0.3]] * 3)
    near, far = signals.nearest_two(logits, distances)
    assert near.tolist() == [0.2, 0.1, 0.2]
    assert far.tolist() == [0.3, 0.2, 0.1]


def test_nearest_two_takes_two_classes_even_when_the_others_are_impossible():
    near, far = signals.nearest_two(np.asarray([[0.0, -np.inf]]), np.asarray([[0.1, 0.7]]))
    assert (near.tolist(), far.tolist()) == ([0.1], [0.7])


@pytest.mark.parametrize("call", [signals.entropy, signals.max_probability])
def test_one_class_is_an_error(call):
    with pytest.raises(UsageError, match="at least 2 classes"):
        call(np.zeros((3, 1)))
    with pytest.raises(UsageError, match="at least 2 classes"):
        signals.nearest_two(np.zeros((3, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 0], [1, 1], 0.292893),
        ([1, 0], [-1, 0], 2.0),
        ([3, 4], [4, 3], 0.04),
        ([1, 2, 2], [2, 0, 0], 2 / 3),
        ([0, 0], [1, 0], 1.0),
    ],
)
def test_cosine_distance_golden(first, second, expected):
    first, second = np.asarray([first], dtype=np.float64), np.asarray([second], dtype=np.float64)
    assert signals.cosine_distance(first, second)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("spread", [0.08, 0.013, 0.002])
def test_cosine_distance_of_close_vectors_keeps_its_digits(spread):
    chance = np.random.default_rng(5)
    first = chance.normal(size=(40, 384)).astype(np.float32)
    second = (first + spread * chance.normal(size=first.shape)).astype(np.float32)
    ours, theirs = (
        one / np.linalg.norm(one, axis=1, keepdims=True)
        for one in (first.astype(np.float64), second.astype(np.float64))
    )
    expected = 1 - (ours * theirs).sum(1)
    found = signals.cosine_distance(first, second)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-6 / spread)


def test_cosine_distance_is_never_negative():
    vectors = np.random.default_rng(0).normal(size=(500, 7)).astype(np.float32)
    assert (1 - (vectors * vectors).sum(1) / np.linalg.norm(vectors, axis=1) ** 2).min() < 0
    assert signals.cosine_distance(vectors, vectors).min() == 0


@given(LOGITS)
def test_numpy_and_torch_agree(logits):
    tensor, distances = torch.from_numpy(logits), np.abs(logits) / 30
    for function in (signals.entropy, signals.max_probability, signals.energy):
        np.testing.assert_allclose(function(logits), function(tensor).numpy(), atol=1e-12)
    here = signals.nearest_two(logits, distances)
    there = signals.nearest_two(tensor, torch.from_numpy(distances))
    np.testing.assert_array_equal(here[0], there[0].numpy())
    np.testing.assert_array_equal(here[1], there[1].numpy())
    ratio, same = signals.distance_ratio(*here), signals.distance_ratio(*there)
    np.testing.assert_allclose(ratio, same.numpy(), atol=1e-12)
    fused = signals.edr(signals.entropy(tensor), same, 1.5)
    np.testing.assert_allclose(signals.edr(signals.entropy(logits), ratio, 1.5), fused, atol=1e-12)


def test_half_precision_is_computed_in_float32():
    half = torch.tensor([[2.0, -1.0]], dtype=torch.bfloat16)
    assert signals.entropy(half).dtype == torch.float32
    assert signals.energy(np.asarray([[2, -1]], dtype=np.float16)).dtype == np.float32


@pytest.mark.parametrize("function", [signals.entropy, signals.energy, signals.max_probability])
def test_gradients_are_right(function):
    logits = torch.tensor([[0.3, -1.2, 2.0], [4.0, 0.1, -0.5]], dtype=torch.float64)
    assert torch.autograd.gradcheck(function, (logits.requires_grad_(),))


def test_the_gradient_of_a_saturated_entropy_is_finite():
    logits = torch.tensor([[500.0, 0.0], [0.0, -float("inf")]], requires_grad=True)
    signals.entropy(logits).sum().backward()
    assert torch.isfinite(logits.grad).all()
