"""Prototypes: moving class means without gradient, the same on every rank."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.families import batch, tiny
from torch import Tensor, nn

from de3bert.model import EarlyExitForSequenceClassification, prototypes
from de3bert.model.prototypes import PrototypeBank, cosine_distance


def rows(*vectors: list[float]) -> Tensor:
    """One exit: (rows, 1, hidden)."""
    return torch.tensor(vectors)[:, None, :]


def prototype(bank: PrototypeBank, label: int) -> list[float]:
    return bank.vectors[0, label].tolist()


def test_the_moving_mean_halves_the_gap_each_time() -> None:
    bank = PrototypeBank(1, 2, 2, gamma=0.5)
    bank.update(rows([1.0, 0.0]), torch.tensor([0]))
    seen = []
    for _ in range(3):
        bank.update(rows([0.0, 1.0]), torch.tensor([0]))
        seen.append(prototype(bank, 0))
    assert seen == [[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]


def test_the_first_centroid_is_the_start() -> None:
    # Three orthogonal centroids: the coordinates of the prototype are their weights.
    bank = PrototypeBank(1, 1, 3, gamma=0.5)
    for axis in torch.eye(3):
        bank.update(axis[None, None, :], torch.tensor([0]))
    assert prototype(bank, 0) == [0.25, 0.25, 0.5]


def test_a_class_mean_is_taken_over_its_own_rows() -> None:
    bank = PrototypeBank(1, 3, 2, gamma=0.5)
    bank.update(rows([2.0, 0.0], [0.0, 4.0], [6.0, 6.0]), torch.tensor([0, 0, 2]))
    assert prototype(bank, 0) == [1.0, 2.0]
    assert prototype(bank, 2) == [6.0, 6.0]
    assert bank.initialised.tolist() == [True, False, True]
    assert bank.counts.tolist() == [2, 0, 1]


def test_an_absent_class_is_left_alone_bit_for_bit() -> None:
    bank = PrototypeBank(2, 2, 5, gamma=0.3)
    bank.update(torch.rand(4, 2, 5), torch.tensor([0, 1, 0, 1]))
    before = bank.vectors[:, 1].clone()
    for _ in range(3):
        bank.update(torch.rand(4, 2, 5), torch.tensor([0, 0, 0, 0]))
    assert torch.equal(bank.vectors[:, 1], before)
    assert bank.counts.tolist() == [14, 2]


@settings(max_examples=30, deadline=None)
@given(
    labels=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=5),
    gamma=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 1000),
)
def test_updates_agree_with_a_loop_over_rows(
    labels: list[list[int]], gamma: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    bank = PrototypeBank(2, 4, 3, gamma)
    slow: dict[tuple[int, int], list[float]] = {}
    counts = [0, 0, 0, 0]
    for given_labels in labels:
        vectors = torch.randn(len(given_labels), 2, 3, generator=generator)
        bank.update(vectors, torch.tensor(given_labels))
        for label in set(given_labels):
            mine = [row for row, one in enumerate(given_labels) if one == label]
            counts[label] += len(mine)
            for exit_index in range(2):
                mean = [
                    sum(float(vectors[row, exit_index, i]) for row in mine) / len(mine)
                    for i in range(3)
                ]
                old = slow.get((exit_index, label))
                slow[exit_index, label] = (
                    mean
                    if old is None
                    else [(1 - gamma) * o + gamma * m for o, m in zip(old, mean, strict=True)]
                )
    assert bank.counts.tolist() == counts
    for label in range(4):
        for exit_index in range(2):
            expected = slow.get((exit_index, label), [0.0, 0.0, 0.0])
            found = bank.vectors[exit_index, label].tolist()
            assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1.0, 0.0], [1.0, 1.0], 0.292893),
        ([1.0, 0.0], [-1.0, 0.0], 2.0),
        ([3.0, 4.0], [4.0, 3.0], 0.04),
        ([1.0, 2.0, 2.0], [2.0, 0.0, 0.0], 2 / 3),
    ],
)
def test_cosine_distance_of_known_pairs(
    one: list[float], other: list[float], expected: float
) -> None:
    for scale in (1.0, 1e-3, 1e4):
        found = cosine_distance(rows(one) * scale, torch.tensor([[other]]))
        assert found.item() == pytest.approx(expected, abs=1e-6)


def test_cosine_distance_of_every_row_exit_and_class() -> None:
    vectors, centres = torch.randn(4, 3, 5), torch.randn(3, 2, 5)
    found = cosine_distance(vectors, centres)
    assert found.shape == (4, 3, 2)
    for row in range(4):
        for exit_index in range(3):
            for label in range(2):
                a, b = vectors[row, exit_index].tolist(), centres[exit_index, label].tolist()
                dot = sum(x * y for x, y in zip(a, b, strict=True))
                expected = 1 - dot / (math.hypot(*a) * math.hypot(*b))
                assert found[row, exit_index, label].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("spread", [0.08, 0.013, 0.002])
def test_distances_of_prototypes_that_lie_close(spread: float) -> None:
    """Against float64: 1 - cos in fp32 would be off by up to a fifth at the least of these."""
    generator = torch.Generator().manual_seed(3)
    common = torch.nn.functional.normalize(torch.randn(384, generator=generator), dim=0)
    away = spread * torch.nn.functional.normalize(
        torch.randn(2, 3, 384, generator=generator), dim=-1
    )
    centres = common + away
    vectors = common + spread * torch.randn(50, 2, 384, generator=generator) / 384**0.5
    exact = vectors.double(), centres.double()
    ours, theirs = (torch.nn.functional.normalize(one, dim=-1) for one in exact)
    expected = 1 - torch.einsum("red,ekd->rek", ours, theirs)
    assert expected.max() < 2 * spread**2
    found = cosine_distance(vectors, centres).double()
    torch.testing.assert_close(found, expected, rtol=2e-6 / spread, atol=0.0)


def test_a_zero_vector_is_at_distance_1() -> None:
    found = cosine_distance(
        torch.tensor([[[0.0, 0.0]], [[0.0, 3.0]]]), torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    )
    assert found.tolist() == [[[1.0, 1.0]], [[0.0, 1.0]]]


def test_a_distance_is_never_negative() -> None:
    vectors = torch.randn(500, 1, 7, generator=torch.Generator().manual_seed(0))
    found = torch.stack([cosine_distance(one[None], one[None]) for one in vectors])
    assert found.min() >= 0
    assert found.max() < 1e-6


def test_autocast_does_not_coarsen_means_and_distances() -> None:
    vectors, labels = torch.randn(6, 2, 32), torch.tensor([0, 1, 2, 0, 1, 2])
    plain, mixed = PrototypeBank(2, 3, 32, 0.5), PrototypeBank(2, 3, 32, 0.5)
    plain.update(vectors, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed.update(vectors, labels)
        distances = mixed(vectors)
    assert torch.equal(mixed.vectors, plain.vectors)
    assert distances.dtype == torch.float32
    assert torch.equal(distances, plain(vectors))


def test_a_class_without_a_prototype_has_no_distance() -> None:
    bank = PrototypeBank(2, 3, 4, gamma=0.5)
    assert bank(torch.randn(2, 2, 4)).isnan().all()
    bank.update(torch.randn(2, 2, 4), torch.tensor([0, 2]))
    distances = bank(torch.randn(5, 2, 4))
    assert distances[..., 1].isnan().all()
    assert distances[..., [0, 2]].isfinite().all()


def test_one_exit_alone_gives_the_same_distances() -> None:
    bank = PrototypeBank(3, 2, 4, gamma=0.5)
    bank.update(torch.randn(4, 3, 4), torch.tensor([0, 1, 0, 1]))
    vectors = torch.randn(5, 3, 4)
    for exit_index in range(3):
        alone = bank(vectors[:, exit_index : exit_index + 1], exit_index)
        torch.testing.assert_close(alone[:, 0], bank(vectors)[:, exit_index])


def test_separation_is_the_smallest_distance_between_two_classes() -> None:
    bank = PrototypeBank(2, 3, 2, gamma=0.5)
    bank.vectors.copy_(
        torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [[3.0, 4.0], [4.0, 3.0], [-1.0, 0.0]]])
    )
    assert bank.separation().tolist() == pytest.approx([1.0, 0.04], abs=1e-6)


def test_a_lower_precision_leaves_the_prototypes_alone() -> None:
    bank = PrototypeBank(1, 2, 8, gamma=0.5)
    bank.update(torch.rand(2, 1, 8), torch.tensor([0, 1]))
    before = bank.vectors.clone()
    for lowered in (bank.half(), bank.to(torch.bfloat16)):
        assert lowered.vectors.dtype == torch.float32
        assert torch.equal(lowered.vectors, before)
    assert "vectors" in dict(bank.named_buffers())
    assert bank.to("meta").vectors.is_meta


@pytest.fixture
def model() -> EarlyExitForSequenceClassification:
    backbone = tiny("bert")
    for module in backbone.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return EarlyExitForSequenceClassification.from_backbone(backbone, num_labels=3)


def test_evaluation_does_not_move_prototypes(model: EarlyExitForSequenceClassification) -> None:
    model.eval()
    model(**batch(), labels=torch.tensor([0, 1, 2]))
    assert not model.prototypes.initialised.any()
    model.train()
    model(**batch())  # nor does a batch without labels
    assert not model.prototypes.initialised.any()
    model(**batch(), labels=torch.tensor([0, 1, 2]))
    assert model.prototypes.initialised.all()


def test_the_update_comes_before_the_regulariser(model: EarlyExitForSequenceClassification) -> None:
    # One row per class: each prototype is its row, so the distances are 0 at once.
    output = model.train()(**batch(), labels=torch.tensor([2, 0, 1]))
    own = output.distances[torch.arange(3), :, [2, 0, 1]]
    assert own.max() < 1e-6
    assert output.distances.max() > 1e-3
    ce = nn.functional.cross_entropy
    shares = torch.tensor([1.0, 2.0, 3.0]) / 6
    each = torch.stack([ce(output.exit_logits[:, m], torch.tensor([2, 0, 1])) for m in range(3)])
    torch.testing.assert_close(output.loss, (shares * each).sum(), atol=1e-6, rtol=0)


def test_no_gradient_flows_through_the_prototypes(
    model: EarlyExitForSequenceClassification,
) -> None:
    labels = torch.tensor([0, 1, 1])
    model.train()
    output = model(**batch(), labels=labels)
    assert not model.prototypes.vectors.requires_grad
    assert not any("prototypes" in name for name, _ in model.named_parameters())
    output.loss.backward()
    # The same loss with the finished prototypes as constants.
    fixed = model.prototypes.vectors.clone()
    again = model(**batch())
    distances = cosine_distance(again.projected, fixed)
    own = distances[torch.arange(3), :, labels].mean(0)  # (exits - 1,)
    (weight,) = torch.autograd.grad(
        0.1 * (own * torch.tensor([1 / 6, 2 / 6])).sum(), [model.projectors[0].weight]
    )
    assert weight.abs().sum() > 0
    torch.testing.assert_close(model.projectors[0].weight.grad, weight)


TWO_RANKS = """
import runpy
import sys
import torch
import torch.distributed as dist

rank, folder = int(sys.argv[1]), sys.argv[2]
PrototypeBank = runpy.run_path(sys.argv[3])["PrototypeBank"]  # torch alone: starts in a second
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
bank = PrototypeBank(2, 3, 4, 0.5)
for step in torch.load(f"{folder}/batches.pt"):
    vectors, labels = step[rank]
    bank.update(vectors, labels)
torch.save(bank.state_dict(), f"{folder}/rank{rank}.pt")
dist.destroy_process_group()
"""


def test_two_ranks_hold_the_prototypes_of_the_whole_batch(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(4)
    labels = [([0, 0, 1], [1, 0]), ([2, 2], [0, 2, 2])]  # shards differ in size and classes
    steps = [
        [(torch.randn(len(one), 2, 4, generator=generator), torch.tensor(one)) for one in step]
        for step in labels
    ]
    torch.save(steps, tmp_path / "batches.pt")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_RANKS, str(rank), str(tmp_path), prototypes.__file__]
        )
        for rank in range(2)
    ]
    try:
        assert [rank.wait(timeout=100) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
    single = PrototypeBank(2, 3, 4, 0.5)
    for (left, left_labels), (right, right_labels) in steps:
        single.update(torch.cat([left, right]), torch.cat([left_labels, right_labels]))
    first, second = (torch.load(tmp_path / f"rank{rank}.pt") for rank in range(2))
    assert single.counts.tolist() == [4, 2, 4]
    for name, expected in single.state_dict().items():
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], expected, atol=1e-6, rtol=1e-6)
