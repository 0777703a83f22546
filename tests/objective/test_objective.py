"""The whole loss: golden numbers, and which parameter learns from which term."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from de3bert.errors import UsageError
from de3bert.methods import METHODS, Term
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.objective import LOSSES, ExitBatch, Objective, exit_weights
from de3bert.objective.cross_entropy import cross_entropy

LABELS = torch.tensor([0, 1, 2, 1])
IDS = torch.randint(5, 60, (4, 6), generator=torch.Generator().manual_seed(2))


def test_exit_weights_grow_with_depth() -> None:
    weights = exit_weights("depth", range(1, 13))
    assert weights[0].item() == pytest.approx(1 / 78)
    assert weights[-1].item() == pytest.approx(12 / 78)
    assert weights.sum().item() == pytest.approx(1.0)
    assert exit_weights("depth", [2, 6]).tolist() == pytest.approx([0.25, 0.75])
    assert exit_weights("last", [1, 2, 3]).tolist() == [0.0, 0.0, 1.0]


def test_the_total_of_known_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"cross_entropy": [1.0, 0.8, 0.6, 0.4], "distance": [0.5, 0.4, 0.3]}
    fixed = {name: (lambda _batch, v=values: torch.tensor(v)) for name, values in parts.items()}
    monkeypatch.setattr(LOSSES, "_parts", fixed)
    objective = Objective(METHODS["de3"].terms, {"alpha": 0.1}, [1, 2, 3, 4])
    total = objective(ExitBatch(torch.zeros(1, 4, 2), torch.tensor([0]), None, {}))
    assert total.item() == pytest.approx(0.622)


def test_cross_entropy_of_every_exit() -> None:
    logits = torch.randn(4, 3, 5)
    found = cross_entropy(ExitBatch(logits, LABELS, None, {}))
    for exit_index in range(3):
        expected = nn.functional.cross_entropy(logits[:, exit_index], LABELS)
        assert found[exit_index].item() == pytest.approx(expected.item(), abs=1e-6)


def test_half_precision_logits_give_a_full_precision_loss() -> None:
    batch = ExitBatch(torch.randn(4, 3, 5).bfloat16(), LABELS, None, {})
    assert Objective([Term("cross_entropy")], {}, [1, 2, 3])(batch).dtype == torch.float32


def model(**settings: object) -> EarlyExitForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    settings = {"num_labels": 3, "pooling": "cls", **settings}
    made = EarlyExitForSequenceClassification.from_backbone(BertModel(config), **settings)
    return made.train()


def gradient(loss: Tensor, parameter: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(loss, [parameter], retain_graph=True, allow_unused=True)
    return torch.zeros_like(parameter) if found is None else found


def test_each_part_learns_from_its_own_term() -> None:
    made = model(alpha=0.1)
    output = made(IDS, labels=LABELS)
    made_of = [
        nn.functional.cross_entropy(output.exit_logits[:, index], LABELS) for index in range(3)
    ]
    rows = torch.arange(4)
    for index in range(2):
        # The internal classifier: its own cross-entropy, weighted m / 6, and nothing else.
        classifier = made.classifiers[index].weight
        expected = (index + 1) / 6 * gradient(made_of[index], classifier)
        assert expected.abs().sum() > 0
        torch.testing.assert_close(gradient(output.loss, classifier), expected)
        # The prototypical network: the distance term alone.
        projector = made.projectors[index].weight
        assert all(gradient(ce, projector).abs().sum() == 0 for ce in made_of)
        pull = output.distances[rows, index, LABELS].mean()
        expected = 0.1 * (index + 1) / 6 * gradient(pull, projector)
        assert expected.abs().sum() > 0
        torch.testing.assert_close(gradient(output.loss, projector), expected)


def test_without_alpha_the_projectors_learn_nothing() -> None:
    made = model(alpha=0.0)
    loss = made(IDS, labels=LABELS).loss
    for projector in made.projectors:
        assert gradient(loss, projector.weight).abs().sum() == 0
    assert made.prototypes.initialised.all()  # but prototypes are still tracked


def test_full_trains_the_last_head_alone() -> None:
    made = model(method="full")
    output = made(IDS, labels=LABELS)
    assert output.exit_logits.shape == (4, 1, 3)
    expected = nn.functional.cross_entropy(output.logits, LABELS)
    torch.testing.assert_close(output.loss, expected)
    assert made.exit_parameters() == {}


def test_the_distance_term_needs_prototypes() -> None:
    made = model(prototypes="none")
    with pytest.raises(UsageError, match='prototypes="none"'):
        made(IDS, labels=LABELS)


def test_one_exit_alone_cannot_carry_the_distance_term() -> None:
    with pytest.raises(UsageError, match="exit before the last layer"):
        model(exit_layers=[3])
