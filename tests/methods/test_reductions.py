"""Methods that become one another where a part is taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.exits.traces import random_trace
from tests.methods.phases import Toy, toy, without_dropout
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from de3bert.exits import Trace, replay
from de3bert.exits.family import Family
from de3bert.methods import METHODS
from de3bert.model import EarlyExitForSequenceClassification as Model
from de3bert.model.outputs import EarlyExitOutput
from de3bert.objective import Clock

MIDDLE = Clock(step=5, total=10, seed=2)
Make = Callable[..., Toy]


@pytest.fixture
def make(tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast) -> Make:
    """A model with large weights, or with all the weights of another one that it has a place for.

    Fresh weights are small: all exits would say the same, and all losses be log 2.
    """

    def build(name: str, like: Model | None = None, **options: float | str) -> Toy:
        pooling = None if METHODS[name].task == "token-classification" else "shared_pooler"
        made = toy(name, tiny_backbone, tiny_tokenizer, pooling=pooling, rows=12, **options)
        if like is None:
            for weight in (each for each in made.model.parameters() if each.dim() > 1):
                nn.init.normal_(weight, std=0.3)
        else:
            missing = made.model.load_state_dict(like.state_dict(), strict=False).missing_keys
            assert not [key for key in missing if key.startswith(("encoder", "pooling", "heads"))]
        return made

    return build


def run(made: Toy, phase: int = -1, clock: Clock = MIDDLE) -> EarlyExitOutput:
    """A pass of training of a phase."""
    with made.phase(made.method.phases[phase]) as running:
        running.at(clock)
        found = without_dropout(made.model)(**made.batch(size=12))
    assert isinstance(found, EarlyExitOutput)
    return found


def each_loss(made: Toy, found: EarlyExitOutput) -> Tensor:
    """Cross-entropies of all exits, (exits,)."""
    labels = made.batch(size=12)["labels"]
    logits = found.exit_logits
    assert logits is not None
    return torch.stack([nn.functional.cross_entropy(each, labels) for each in logits.unbind(1)])


def as_trace(found: EarlyExitOutput) -> Trace:
    assert found.exit_logits is not None
    distances = None if found.distances is None else found.distances.detach().numpy()
    rows, exits, classes = found.exit_logits.shape
    return Trace(
        found.exit_logits.detach().numpy(), distances, None, np.full(rows, 9),
        tuple(range(1, exits + 1)), tuple(map(str, range(classes))),
    )  # fmt: skip


# --- rules


@pytest.mark.parametrize("number", [0, 1, 2])
def test_low_entropy_once_is_the_entropy_rule(number: int) -> None:
    trace, plain = random_trace(), Family.parse(METHODS["joint-entropy"].signal)
    several = Family.parse(METHODS["pcee"].families[number])
    assert replace(several, count=1) == plain
    for tau in (0.1, 0.4, 0.8):
        exits = replay(trace, plain.policy(tau)).exit_layers
        once = replace(several, count=1).policy(tau)
        assert np.array_equal(replay(trace, once).exit_layers, exits)
        assert (replay(trace, several.policy(tau)).exit_layers > exits).any()


@pytest.mark.parametrize("method", ["de3", "de3-no-pn", "de-cosee", "de3-words"])
def test_without_lambda_distances_do_not_count(method: str) -> None:
    trace, fused = random_trace(), Family.parse(METHODS[method].signal)
    assert fused.signal is not None
    local = replace(fused, signal=replace(fused.signal, params=(("lambda", 0.0),)))
    plain = Family.parse(METHODS["joint-entropy"].signal)
    for tau in (0.1, 0.4, 0.8):
        exits = replay(trace, plain.policy(tau)).exit_layers
        assert np.array_equal(replay(trace, local.policy(tau)).exit_layers, exits)
        assert not np.array_equal(replay(trace, fused.policy(tau)).exit_layers, exits)


# --- ours


def test_networks_that_change_nothing_are_none(make: Make) -> None:
    whole = make("de3")
    for network in whole.model.projectors:
        nn.init.eye_(network.weight)
        nn.init.zeros_(network.bias)
    bare = make("de3-no-pn", whole.model)
    for step in range(3):  # prototypes move along
        clock = Clock(step, 3)
        one, other = run(whole, clock=clock), run(bare, clock=clock)
        torch.testing.assert_close(one.distances, other.distances)
        torch.testing.assert_close(one.loss, other.loss)
        vectors = bare.model.prototypes.vectors
        torch.testing.assert_close(whole.model.prototypes.vectors, vectors)
        with torch.no_grad():
            for made in (whole, bare):
                made.model.pooling.dense.weight.mul_(0.7)
    family = Family.parse(METHODS["de3"].signal)
    seen = set()
    for tau in (0.1, 0.3, 0.5, 0.7):
        exits = [replay(as_trace(found), family.policy(tau)).exit_layers for found in (one, other)]
        assert np.array_equal(*exits)
        seen |= set(exits[0].tolist())
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("name", "without"),
    [("de3-no-pn-no-dar", {}), ("de3", {"alpha": 0.0}), ("de3", {"dar": "none"}),
     ("de3-v2", {"alpha": 0.0}), ("leebert", {"kd": 0.0}), ("consistentee", {})],
)  # fmt: skip
def test_what_is_left_is_the_joint_training(
    name: str, without: dict[str, float | str], make: Make
) -> None:
    joint = make("joint-entropy")
    expected = run(joint).loss
    torch.testing.assert_close(run(make(name, joint.model, **without), 0).loss, expected)
    if without:
        assert not torch.allclose(run(make(name, joint.model), 0).loss, expected)


def test_without_beta_the_combined_form_is_the_centre(make: Make) -> None:
    centre = make("de3")
    expected = run(centre).loss
    fresh = make("de3")  # prototypes of the first one have moved
    torch.testing.assert_close(run(make("de3-v3", fresh.model, beta=0.0)).loss, expected)
    assert not torch.allclose(run(make("de3-v3", fresh.model)).loss, expected)


def test_on_words_it_is_sentee_without_the_regulariser(make: Make) -> None:
    plain = make("sentee")
    expected = run(plain).loss
    torch.testing.assert_close(run(make("de3-words", plain.model, alpha=0.0)).loss, expected)
    torch.testing.assert_close(run(make("tokee", plain.model), 0).loss, expected)
    halting = make("tokee", plain.model)
    assert not torch.allclose(run(halting, 1).loss, expected)
    whole = halting.model.eval()(**halting.batch(size=12))  # nobody halts outside of training
    torch.testing.assert_close(whole.loss, expected)


# --- the others


def test_temperatures_of_one_change_nothing(make: Make) -> None:
    plain = make("joint-entropy")
    tempered = make("joint-entropy-calibrated", plain.model)
    tempered.model.config.temperatures = [1.0] * 4
    one, other = run(plain), run(tempered)
    assert torch.equal(one.exit_logits, other.exit_logits)
    torch.testing.assert_close(one.loss, other.loss)
    tempered.model.config.temperatures = [2.0] * 4
    torch.testing.assert_close(2 * run(tempered).exit_logits, one.exit_logits)


@pytest.mark.parametrize("name", ["deebert", "full", "layers-4"])
def test_first_stages_and_whole_depth_are_plain_fine_tuning(name: str, make: Make) -> None:
    made = make(name)
    found = run(made, 0)
    torch.testing.assert_close(found.loss, each_loss(made, found)[-1])
    plain = make("full")
    plain.model.encoder.load_state_dict(made.model.encoder.state_dict())
    plain.model.pooling.load_state_dict(made.model.pooling.state_dict())
    plain.model.heads.exits[0].load_state_dict(made.model.heads.exits[-1].state_dict())
    reference = run(plain)
    torch.testing.assert_close(found.loss, reference.loss)
    assert torch.equal(found.logits, reference.logits)


def test_mixtures_of_the_own_vector_alone_are_linear_heads(make: Make) -> None:
    mixed = make("righttool")
    layers = mixed.model.config.exit_layers
    linear = make("joint-entropy").model
    for head, layer in zip(mixed.model.heads.exits, layers, strict=True):
        own = linear.heads.exits[layer - 1]
        head.classifier.load_state_dict(own.state_dict())
        assert head.weights.tolist() == [0.0] * (len(head.weights) - 1) + [1.0]
    linear.encoder.load_state_dict(mixed.model.encoder.state_dict())
    linear.pooling.load_state_dict(mixed.model.pooling.state_dict())
    found = run(mixed)
    whole = without_dropout(linear)(**mixed.batch(size=12))
    torch.testing.assert_close(found.exit_logits, whole.exit_logits[:, [m - 1 for m in layers]])
    torch.testing.assert_close(found.loss, each_loss(mixed, found).sum())


@torch.no_grad()
def test_students_that_say_what_the_teacher_says_have_nothing_to_learn(make: Make) -> None:
    made = make("fastbert")
    heads = made.model.heads.exits
    assert run(made, 1).loss > 1e-4
    for head in heads:  # the same answer whatever is read
        head.load_state_dict(heads[-1].state_dict())
        head.narrow.weight.zero_()
    assert run(made, 1).loss.abs() < 1e-7
    assert run(made, 0).loss > 0.1  # which need not be right


def test_cosee_without_weights_and_calibration_is_the_mean_over_exits(make: Make) -> None:
    made = make("cosee", b0=0.0, calibration=0.0)
    found = run(made)
    torch.testing.assert_close(found.loss, each_loss(made, found).mean())
    for options in ({"b0": 5.0, "calibration": 0.0}, {"b0": 0.0, "calibration": 1.0}):
        assert not torch.allclose(run(make("cosee", made.model, **options)).loss, found.loss)


def test_de_cosee_without_the_regulariser_is_cosee(make: Make) -> None:
    made = make("cosee", b0=5.0)
    expected = run(made).loss
    torch.testing.assert_close(run(make("de-cosee", made.model, b0=5.0, alpha=0.0)).loss, expected)
    assert run(make("de-cosee", made.model, b0=5.0)).loss > expected


@pytest.mark.parametrize("step", [0, 1, 6, 7])
def test_berxit_takes_turns(step: int, make: Make) -> None:
    made = make("berxit")
    found = run(made, clock=Clock(step, 10))
    each, labels = each_loss(made, found), made.batch(size=12)["labels"]
    right = (found.exit_logits[:, :-1].argmax(-1) == labels[:, None]).float()
    error = (found.certainty - right).square().mean()
    torch.testing.assert_close(found.loss - error, each.sum() if step % 2 else each[-1])


def test_a_cascade_without_margin_is_two_models(make: Make) -> None:
    made = make("cascadebert", difficulty=0.0)
    found = run(made)
    torch.testing.assert_close(found.loss, each_loss(made, found).sum())
