"""Modules of a fine-tuned model replaced by single layers (BERT-of-Theseus)."""

from __future__ import annotations

import pytest
import torch
from tests.model.families import FAMILIES, batch, tiny
from torch import nn

from de3bert.errors import UsageError
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.groups import train_only
from de3bert.objective import Clock
from de3bert.training.hook import HOOKS, PhaseContext
from de3bert.training.replacing import (
    Replacing,
    constant_rate,
    linear_rate,
    module_layers,
    replacing_rate,
)
from de3bert.training.rows import collate


def test_known_rates() -> None:
    """b = 0.3, k = 0.0006: 0.9 after 1000 steps, 1 from step 1167 on."""
    assert linear_rate(0, 0.3, 0.0006) == 0.3
    assert linear_rate(1000, 0.3, 0.0006) == pytest.approx(0.9)
    assert linear_rate(1166, 0.3, 0.0006) < 1
    assert linear_rate(1167, 0.3, 0.0006) == 1
    assert linear_rate(9999, 0.3, 0.0006) == 1
    assert [constant_rate(step, 0.5, 2500) for step in (0, 2499, 2500, 9999)] == [0.5, 0.5, 1, 1]


def test_known_number_of_layers_in_a_pass() -> None:
    """At p = 0.3 a pass runs 6 (p + 2 (1 - p)) = 10.2 of 12 layers on average."""
    p = linear_rate(0, 0.3, 0.0006)
    layers = sum(p * 1 + (1 - p) * len(module_layers(number, 6, 12)) for number in range(1, 7))
    assert layers == pytest.approx(10.2)


def test_the_slope_follows_the_length_of_the_training() -> None:
    options = {"schedule": "linear", "rate": 0.3, "replacing": 0.5}
    found = [replacing_rate(Clock(step, 2000), options) for step in (0, 500, 999, 1000, 1999)]
    assert found == pytest.approx([0.3, 0.65, 0.9993, 1.0, 1.0])
    # The paper's slope: 1167 steps of a training of 2334.
    assert replacing_rate(Clock(1000, 2334), options) == pytest.approx(0.9, abs=1e-3)
    constant = {**options, "schedule": "constant"}
    steps = [0, 999, 1000]
    assert [replacing_rate(Clock(step, 2000), constant) for step in steps] == [0.3, 0.3, 1.0]
    for schedule in ("linear", "constant"):
        at_once = {**options, "schedule": schedule, "replacing": 0.0}
        assert replacing_rate(Clock(0, 2000), at_once) == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schedule": "square"}, 'schedule "square"'),
        ({"rate": 0.0}, "rate must be a number above 0"),
        ({"rate": 1.5}, "at most 1, got 1.5"),
        ({"replacing": 2.0}, "at most 1, got 0.3 and 2"),
        ({"replacing": -0.5}, "replacing must be a number at least 0"),
    ],
)
def test_rates_that_make_no_sense_are_refused(context, options, words) -> None:
    made = context("theseus")
    made.options = {**made.options, **options}
    with pytest.raises(UsageError, match=words):
        HOOKS["replacing"](made).check()


@pytest.mark.parametrize(
    ("modules", "depth", "expected"),
    [
        (6, 12, [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]),
        (2, 5, [[1, 2], [3, 4, 5]]),
        (3, 7, [[1, 2], [3, 4], [5, 6, 7]]),
        (3, 3, [[1], [2], [3]]),
        (1, 4, [[1, 2, 3, 4]]),
        (5, 12, [[1, 2], [3, 4], [5, 6, 7], [8, 9], [10, 11, 12]]),
    ],
)
def test_layers_of_modules(modules, depth, expected) -> None:
    found = [list(module_layers(number, modules, depth)) for number in range(1, modules + 1)]
    assert found == expected


def begun(made: PhaseContext, clock: Clock | None = None) -> Replacing:
    """The hook in its phase."""
    train_only(made.model, ("layers",))
    hook = HOOKS["replacing"](made)
    hook.check()
    hook.before()
    hook.step(clock or Clock(0, 50, seed=3))
    made.model.train()
    assert isinstance(hook, Replacing)
    return hook


def a_batch(made: PhaseContext):
    return collate(made.encoder, [made.rows[index] for index in range(16)])


def without_dropout(*models: nn.Module) -> None:
    for model in models:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            for name in ("dropout_prob", "attention_dropout"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, 0.0)


def loaded(teacher) -> EarlyExitForSequenceClassification:
    return EarlyExitForSequenceClassification.from_pretrained(str(teacher)).eval()


def test_the_successor_starts_as_the_teachers_first_layers(context, teacher) -> None:
    made = context("theseus", teacher)
    begun(made)
    whole, model = loaded(teacher).state_dict(), made.model.state_dict()
    kept = {name for name in whole if not name.startswith(("encoder.layers.2", "encoder.layers.3"))}
    assert set(model) == kept  # the predecessor's layers are not in the model
    assert all(torch.equal(model[name], whole[name]) for name in kept)


def test_only_layers_learn(context, teacher) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    learning = {name for name, weight in made.model.named_parameters() if weight.requires_grad}
    assert learning == {name for name in made.model.state_dict() if "encoder.layers" in name}
    assert not any(weight.requires_grad for weight in hook.predecessor.parameters())


def test_nobody_replaced_gives_the_teachers_answers(context, teacher) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    without_dropout(made.model, hook.predecessor)
    hook.before_pass = lambda given, generator: hook.drawn.fill_(False)
    inputs = {k: v for k, v in a_batch(made).items() if k != "labels"}
    expected = loaded(teacher)(**inputs).logits
    torch.testing.assert_close(made.model(**inputs).logits, expected, atol=1e-5, rtol=1e-5)
    short = made.model.eval()(**inputs).logits  # and evaluation is the successor's alone
    assert not torch.allclose(short, expected, atol=1e-2)


def test_everybody_replaced_is_the_successor_alone(context, teacher, monkeypatch) -> None:
    made = context("theseus", teacher, rate=1.0)
    hook = begun(made)
    without_dropout(made.model)

    def never(*arguments):
        raise AssertionError("the predecessor was asked")

    monkeypatch.setattr(hook.predecessor, "own_layer", never)
    given = a_batch(made)
    found = made.model(**given).logits
    torch.testing.assert_close(found, made.model.eval()(**given).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("drawn", [[True, False], [False, True]])
def test_mixed_draws_run_one_layer_or_two(context, teacher, drawn) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    without_dropout(made.model, hook.predecessor)
    with torch.no_grad():
        for weight in made.model.encoder.layers.parameters():
            weight.mul_(1.3)  # the successor has learnt something
    hook.before_pass = lambda given, generator: hook.drawn.copy_(torch.tensor(drawn))
    inputs = {k: v for k, v in a_batch(made).items() if k != "labels"}
    found = made.model(**inputs).logits
    whole = loaded(teacher)
    own, theirs = made.model.encoder, whole.encoder
    hidden = (prepared := theirs.prepare(**inputs)).embedded
    for module, replaced in enumerate(drawn, start=1):
        if replaced:
            hidden = own.own_layer(own.prepare(**inputs), module, hidden)
        else:
            for number in (2 * module - 1, 2 * module):
                hidden = theirs.layer(prepared, number, hidden)
    pooled = whole.pooling(hidden, inputs["attention_mask"], 0)
    torch.testing.assert_close(found, whole.heads.exits[0](pooled), atol=1e-5, rtol=1e-5)


def draws(hook: Replacing, made: PhaseContext, clock: Clock, passes: int = 1) -> list[list[bool]]:
    hook.step(clock)
    found = []
    for _ in range(passes):
        made.model(**a_batch(made))
        found.append(hook.drawn.tolist())
    return found


def test_draws_follow_seed_step_and_pass(context, teacher) -> None:
    made = context("theseus", teacher, schedule="constant", rate=0.5)
    hook = begun(made)
    first = [draws(hook, made, Clock(step, 400, seed=3), passes=2) for step in range(24)]
    torch.rand(5)
    assert [draws(hook, made, Clock(step, 400, seed=3), passes=2) for step in range(24)] == first
    assert any(one != two for one, two in first)
    assert [draws(hook, made, Clock(step, 400, seed=4), passes=2) for step in range(24)] != first
    flat = [drawn for step in first for one in step for drawn in one]
    assert 0.3 < sum(flat) / len(flat) < 0.7


def test_a_batch_in_chunks_is_drawn_once(context, teacher, monkeypatch) -> None:
    made = context("theseus", teacher, schedule="constant", rate=0.5)
    hook = begun(made)
    without_dropout(made.model, hook.predecessor)
    given = a_batch(made)
    chunks = [(torch.arange(8), 24), (torch.arange(8, 16), 24)]
    for step in range(6):
        hook.step(Clock(step, 50, seed=3))
        whole = made.model(**given).logits
        with monkeypatch.context() as patch:
            patch.setattr("de3bert.model.early_exit.length_chunks", lambda mask: chunks)
            hook.step(Clock(step, 50, seed=3))
            torch.testing.assert_close(made.model(**given).logits, whole, atol=1e-5, rtol=1e-5)


def test_a_step_that_draws_nobody_has_a_gradient_of_zero(context, teacher) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    hook.before_pass = lambda given, generator: hook.drawn.fill_(False)
    made.model(**a_batch(made)).loss.backward()
    slopes = [weight.grad for weight in made.model.encoder.layers.parameters()]
    assert all(slope is not None and not slope.any() for slope in slopes)


def test_gradients_pass_through_the_teachers_modules(context, teacher) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    hook.before_pass = lambda given, generator: hook.drawn.copy_(torch.tensor([True, False]))
    made.model(**a_batch(made)).loss.backward()
    own = made.model.encoder.layers
    assert all(
        weight.grad.any() for name, weight in own[0].named_parameters() if "key.bias" not in name
    )
    assert not any(weight.grad.any() for weight in own[1].parameters())
    assert all(weight.grad is None for weight in hook.predecessor.parameters())


def test_training_changes_layers_alone_and_helps_the_successor(context, teacher) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    frozen = {name: value.clone() for name, value in hook.predecessor.state_dict().items()}
    given = a_batch(made)
    at_first = made.model.eval()(**given).loss.item()
    made.model.train()
    learning = [weight for weight in made.model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=1e-3)
    for step in range(50):
        hook.step(Clock(step, 50, seed=3))
        made.model(**given).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert made.model.eval()(**given).loss.item() < 0.5 * at_first
    for name, value in made.model.state_dict().items():
        same = torch.equal(value, before[name])
        assert same != name.startswith("encoder.layers"), name
    after = hook.predecessor.state_dict()
    assert all(torch.equal(after[name], frozen[name]) for name in frozen)


def test_the_model_is_left_as_an_ordinary_one(context, teacher) -> None:
    made = context("theseus", teacher)
    hook = begun(made)
    hook.after()
    assert made.model.encoder.stand_in is None
    assert not made.model._forward_pre_hooks


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_predecessors_of_all_families(family: str, context, tmp_path, teacher) -> None:
    """Masks, rotary tables and kinds of attention differ from layer to layer in some."""
    build = EarlyExitForSequenceClassification.from_backbone
    torch.manual_seed(2)
    whole = build(tiny(family), labels=["neg", "pos"], method="full", pooling="mean")
    whole.save_pretrained(tmp_path / "teacher")
    torch.manual_seed(4)
    small = build(tiny(family), labels=["neg", "pos"], method="theseus", pooling="mean")
    made = context("theseus", teacher)
    made.model, made.teacher = small, tmp_path / "teacher"
    hook = begun(made)
    without_dropout(small, hook.predecessor)
    hook.before_pass = lambda given, generator: hook.drawn.fill_(False)
    hook.predecessor.eval()
    small.eval()
    small.encoder.training = True  # replaced as in training, but without any dropout
    small.training = True
    hidden = small(**batch()).logits
    torch.testing.assert_close(hidden, whole(**batch()).logits, atol=1e-4, rtol=1e-4)


def test_a_teacher_of_another_shape_is_refused(context, tmp_path, teacher) -> None:
    build = EarlyExitForSequenceClassification.from_backbone
    labels = ["neg", "pos"]
    other = build(tiny("bert"), labels=labels, method="full", pooling="mean")
    other.save_pretrained(tmp_path / "vocabulary")
    early = build(str(context("full").backbone), labels=labels, method="joint-entropy")
    early.save_pretrained(tmp_path / "exits")
    for name in ("vocabulary", "exits"):
        made = context("theseus", tmp_path / name)
        with pytest.raises(UsageError, match=r'do not fit: (.|\n)*of method "full" with the same'):
            HOOKS["replacing"](made).before()
