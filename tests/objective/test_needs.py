"""What every loss asks for, and what it says when that is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from de3bert.errors import UsageError
from de3bert.objective import needs

EXTRAS = [
    ("soft_labels", "teacher_logits", {}),
    ("knowledge", "teacher_logits", {}),
    ("patient_states", "first_tokens", {}),
    ("patient_states", "teacher_states", {}),
    ("policy_gradient", "memorised", {}),
    ("difficulty_margin", "difficult", {}),
    ("learned_distillation", "row", {"halves": "fixed"}),
]


@pytest.mark.parametrize(("loss", "name", "options"), EXTRAS)
def test_a_missing_extra_is_named(make, run, loss, name, options) -> None:
    whole = make(options=options)
    run(loss, whole)
    left = {key: value for key, value in whole.extras.items() if key != name}
    with pytest.raises(UsageError, match=f'"{loss}" needs "{name}"') as error:
        run(loss, replace(whole, extras=left))
    assert all(key in str(error.value) for key in left)  # what the batch does have


@pytest.mark.parametrize("loss", ["router_error", "policy_gradient", "sampled_cross_entropy"])
def test_a_missing_router_is_named(make, run, loss) -> None:
    with pytest.raises(UsageError, match=f'"{loss}" needs a router'):
        run(loss, make(certainty=None))


@pytest.mark.parametrize(
    ("loss", "options"), [("imitation", {}), ("learned_distillation", {"unroll": 1.0})]
)
def test_missing_states_are_named(make, run, loss, options) -> None:
    with pytest.raises(UsageError, match=f'"{loss}" needs the vectors that the exits read'):
        run(loss, make(states=None, options=options))


@pytest.mark.parametrize("loss", ["router_error", "imitation"])
def test_a_single_exit_is_refused(make, run, loss) -> None:
    with pytest.raises(UsageError, match=f'"{loss}" needs an exit before the last layer'):
        run(loss, make(exits=1))


@pytest.mark.parametrize("heads", [None, nn.Linear(2, 2)])
def test_heads_that_do_not_foresee_are_refused(make, run, heads) -> None:
    had = "none" if heads is None else "Linear"
    with pytest.raises(UsageError, match=f"predict later states, but these are {had}"):
        run("imitation", make(heads=heads))


def not_all_linear() -> nn.Module:
    heads = nn.Module()
    heads.exits = nn.ModuleList([nn.Linear(6, 3), nn.Sequential(nn.Linear(6, 3))])
    return heads


@pytest.mark.parametrize("heads", [None, nn.Linear(2, 2), not_all_linear()])
def test_only_linear_heads_can_be_unrolled(make, run, heads) -> None:
    with pytest.raises(UsageError, match="Use linear heads, or unroll=0"):
        run("learned_distillation", make(exits=2, heads=heads, options={"unroll": 1.0}))


@pytest.mark.parametrize(
    ("loss", "option", "value", "message"),
    [
        ("knowledge", "temperature", 0.0, "temperature must be a number above 0, got 0"),
        ("signal_calibration", "margin", -0.1, "margin must be a number at least 0, got -0.1"),
        ("policy_gradient", "rollouts", 1.0, "rollouts must be a whole number from 2 on, got 1"),
        ("sampled_cross_entropy", "rollouts", 2.5, "whole number from 2 on, got 2.5"),
        ("policy_gradient", "a", float("nan"), "a must be a number at least 0, got nan"),
        ("weighted_cross_entropy", "thresholds", 0.0, "whole number from 1 on, got 0"),
        ("weighted_cross_entropy", "b0", float("inf"), "b0 must be a number at least 0, got inf"),
        ("self_distillation", "direction", "techer", 'Did you mean "teacher"'),
        ("learned_distillation", "from", "latter", 'Did you mean "later"'),
        ("learned_distillation", "halves", "both", "Available: crossed, fixed, none"),
        ("learned_distillation", "unroll", 2.0, "unroll must be 0 or 1, got 2"),
        ("learned_distillation", "temperature", 0.0, "temperature must be a number above 0"),
        ("learned_distillation", "inner_rate", 0.0, "inner_rate must be a number above 0"),
        ("difficulty_margin", "margin", float("nan"), "margin must be a number at least 0"),
    ],
)
def test_options_are_checked(make, run, loss, option, value, message) -> None:
    with pytest.raises(UsageError, match=message):
        run(loss, make(options={option: value}))


def test_options_have_defaults() -> None:
    assert needs.number({}, "margin", 0.3) == 0.3
    assert needs.number({"margin": 0.0}, "margin", 0.3) == 0.0
    assert needs.whole_number({}, "rollouts", 8, least=2) == 8
    assert needs.whole_number({"rollouts": 2.0}, "rollouts", 8, least=2) == 2
    assert needs.word({}, "from", ("all", "later")) == "all"
    assert needs.word({"from": "later"}, "from", ("all", "later")) == "later"


def test_what_is_asked_for_comes_in_full_precision(make) -> None:
    batch = make()
    half = replace(batch, certainty=batch.certainty.bfloat16(), states=batch.states.bfloat16())
    assert needs.certainty(half, "any").dtype == torch.float32
    assert needs.states(half, "any").dtype == torch.float32
