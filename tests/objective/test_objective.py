"""The whole loss: golden numbers, and which parameter learns from which term."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from de3bert.errors import UsageError
from de3bert.methods import METHODS, Term
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.objective import LOSSES, Clock, ExitBatch, Objective, exit_weights
from de3bert.objective.cross_entropy import cross_entropy

LABELS = torch.tensor([0, 1, 2, 1])
IDS = torch.randint(5, 60, (4, 6), generator=torch.Generator().manual_seed(2))


def test_exit_weights_grow_with_depth() -> None:
    weights = exit_weights("depth", range(1, 13))
    assert weights[0].item() == pytest.approx(1 / 78)
    assert weights[-1].item() == pytest.approx(12 / 78)
    assert weights.sum().item() == pytest.approx(1.0)
    assert exit_weights("depth", [2, 6]).tolist() == pytest.approx([0.25, 0.75])


def test_other_weights_over_exits() -> None:
    assert exit_weights("last", [1, 2, 3]).tolist() == [0.0, 0.0, 1.0]
    assert exit_weights("internal", [1, 2, 3]).tolist() == [1.0, 1.0, 0.0]
    assert exit_weights("uniform", [1, 2, 3]).tolist() == [1.0, 1.0, 1.0]
    assert exit_weights("mean", [1, 2, 3, 6]).tolist() == [0.25] * 4
    assert exit_weights("last", [6]).tolist() == [1.0]
    assert exit_weights("internal", [6]).tolist() == [0.0]


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


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses of known value: one per exit, one per internal exit, one that is complete."""
    values = {"each": [1.0, 2.0, 4.0], "before": [10.0, 20.0], "whole": 100.0}
    fixed = {name: (lambda _batch, v=value: torch.tensor(v)) for name, value in values.items()}
    monkeypatch.setattr(LOSSES, "_parts", fixed)


def total(*terms: Term, options: dict | None = None, **batch: object) -> float:
    made = ExitBatch(torch.zeros(1, 3, 2), torch.tensor([0]), None, {}, **batch)
    return Objective(terms, options or {}, [1, 2, 3])(made).item()


@pytest.mark.parametrize(
    ("exits", "each", "before"),
    [
        ("depth", (1 + 4 + 12) / 6, (10 + 40) / 6),
        ("uniform", 7.0, 30.0),
        ("last", 4.0, 0.0),
        ("internal", 3.0, 30.0),
        ("mean", 7 / 3, 10.0),
    ],
)
def test_every_weighting_of_known_parts(
    parts: None, exits: str, each: float, before: float
) -> None:
    assert total(Term("each", exits=exits)) == pytest.approx(each)
    assert total(Term("before", exits=exits)) == pytest.approx(before)
    assert total(Term("whole", exits=exits)) == 100.0  # one number is complete in itself


def test_terms_add_up_with_their_weights(parts: None) -> None:
    terms = Term("each", 0.5, "uniform"), Term("whole", "share")
    assert total(*terms, options={"share": 0.25}) == pytest.approx(3.5 + 25)


def test_terms_of_even_and_odd_steps(parts: None) -> None:
    terms = (
        Term("each", exits="last", steps="even"),
        Term("each", 10.0, "last", steps="odd"),
        Term("whole"),
    )
    found = [total(*terms, clock=Clock(step=step)) for step in range(4)]
    assert found == [104.0, 140.0, 104.0, 140.0]
    # Outside training there are no steps: all terms count.
    assert total(*terms, clock=Clock(step=1), training=False) == 144.0


def test_terms_without_their_extras_count_in_training_only(parts: None) -> None:
    term = Term("whole", needs=("teacher_logits",))
    given = {"teacher_logits": torch.zeros(1, 2)}
    assert total(term, Term("each", exits="last"), training=False) == 4.0
    assert total(term, extras=given, training=False) == 100.0
    assert total(term) == 100.0  # the loss itself says what is missing


def linear_heads(exits: int) -> nn.Module:
    heads = nn.Module()
    heads.exits = nn.ModuleList(nn.Linear(5, 3) for _ in range(exits))
    return heads


def test_stateful_losses_are_made_once_for_all_phases() -> None:
    learned, weighted = Term("learned_distillation"), Term("weighted_cross_entropy")
    later = [learned, weighted, Term("cross_entropy")]
    objective = Objective([learned], {"b0": 2.0}, [1, 2, 3], all_terms=later)
    assert set(objective.stateful) == {"learned_distillation", "weighted_cross_entropy"}
    assert objective.stateful["weighted_cross_entropy"].options == {"b0": 2.0}
    assert {name.split(".")[1] for name, _ in objective.named_parameters()} == {learned.loss}
    assert {name.split(".")[1] for name, _ in objective.named_buffers()} == {weighted.loss}
    batch = ExitBatch(
        torch.randn(4, 3, 3), LABELS, None, {}, states=torch.randn(4, 3, 5), heads=linear_heads(3),
        extras={"row": torch.arange(4)},
    )  # fmt: skip
    before = dict(objective.stateful)
    first = objective(batch)
    objective.enter([weighted])
    assert objective.terms == (weighted,)
    assert objective(batch) != first
    assert dict(objective.stateful) == before
    again = Objective([learned], {"b0": 2.0}, [1, 2, 3], all_terms=later)
    again.load_state_dict(objective.state_dict())
    assert torch.equal(
        again.stateful["weighted_cross_entropy"].seen,
        objective.stateful["weighted_cross_entropy"].seen,
    )


def test_the_clock() -> None:
    assert Clock(step=3, total=12).progress == 0.25
    assert Clock(step=13, total=12).progress == 1.0
    assert Clock(step=0, total=0).progress == 0.0

    def drawn(salt: int = 0, **fields: int) -> list[float]:
        return torch.rand(3, generator=Clock(**fields).generator(salt)).tolist()

    assert drawn(step=2, seed=1) == drawn(step=2, seed=1, total=5, epoch=3)
    others = [drawn(step=2, seed=1), drawn(step=3, seed=1), drawn(step=2, seed=2)]
    others.append(drawn(1, step=2, seed=1))
    assert len({tuple(numbers) for numbers in others}) == 4


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
        classifier = made.heads.exits[index].weight
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
