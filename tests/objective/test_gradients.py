"""For every loss: which inputs learn from it, and that no value or gradient is ever NaN."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from de3bert.objective import LOSSES, Clock, ExitBatch

ALL, INTERNAL, LAST, FIRST, NONE = {0, 1, 2, 3}, {0, 1, 2}, {3}, {0}, set()

# Of a batch with 4 exits: the exits whose logits have a gradient, and the other inputs that do.
LEARNS: dict[str, tuple[set[int], set[str]]] = {
    "cross_entropy": (ALL, set()),
    "difficulty_margin": (FIRST, set()),
    "distance": (NONE, {"distances"}),
    "imitation": (NONE, {"states", "heads"}),
    "knowledge": (LAST, set()),
    "learned_distillation": (ALL, set()),
    "patient_states": (NONE, {"extras.first_tokens"}),
    "policy_gradient": (NONE, {"certainty"}),
    "router_error": (NONE, {"certainty"}),
    "sampled_cross_entropy": (ALL, set()),
    "self_distillation": (INTERNAL, set()),
    "signal_calibration": (INTERNAL, set()),
    "soft_labels": (LAST, set()),
    "until_halted": (ALL, set()),
    "weighted_cross_entropy": (ALL, set()),
}


def test_every_loss_is_in_the_table() -> None:
    """But for those that read tokens, which these batches do not have."""
    on_tokens = {name for name in LOSSES if getattr(LOSSES[name], "reads_tokens", False)}
    assert set(LOSSES) - on_tokens == set(LEARNS)


def inputs(batch: ExitBatch) -> dict[str, Tensor]:
    """All that a gradient could reach, but the logits."""
    found = {"distances": batch.distances, "certainty": batch.certainty, "states": batch.states}
    found |= {f"extras.{k}": v for k, v in batch.extras.items() if v.requires_grad}
    return found


def touched(gradient: Tensor | None) -> bool:
    return gradient is not None and bool((gradient != 0).any())


@pytest.mark.parametrize("loss", LEARNS)
def test_gradients_flow_where_they_should_and_nowhere_else(make, run, loss) -> None:
    batch = make(rows=12)
    run(loss, batch).sum().backward()
    exits, others = LEARNS[loss]
    slopes = batch.exit_logits.grad
    found = NONE if slopes is None else {m for m in range(4) if touched(slopes[:, m])}
    assert found == exits
    learning = {name for name, value in inputs(batch).items() if touched(value.grad)}
    if any(touched(parameter.grad) for parameter in batch.heads.parameters()):
        learning.add("heads")
    assert learning == others


def test_the_unrolled_step_touches_neither_states_nor_heads(make, run) -> None:
    batch = make(options={"unroll": 1.0})
    run("learned_distillation", batch).backward()
    assert not touched(batch.states.grad)
    assert not any(touched(parameter.grad) for parameter in batch.heads.parameters())


def test_the_last_states_are_imitated_but_do_not_learn(make, run) -> None:
    batch = make()
    run("imitation", batch).backward()
    assert [touched(batch.states.grad[:, m]) for m in range(4)] == [True, True, True, False]
    # No exit comes before the first, so nobody foresees it.
    predictors = [touched(part.weight.grad) for part in batch.heads.predictors]
    assert predictors == [False, True, True, True]


def test_the_last_layer_of_the_student_is_left_alone(make, run) -> None:
    batch = make()
    run("patient_states", batch).backward()
    slopes = batch.extras["first_tokens"].grad
    assert [touched(slopes[:, layer]) for layer in range(3)] == [True, True, False]


def extreme(batch: ExitBatch, size: float, seed: int) -> ExitBatch:
    """Saturated logits of both signs, certain routers, states that are zero or huge."""
    generator = torch.Generator().manual_seed(seed)

    def pick(values: list[float], like: Tensor) -> Tensor:
        chosen = torch.randint(len(values), like.shape, generator=generator)
        return torch.tensor(values)[chosen].requires_grad_()

    extras = {
        **batch.extras,
        "teacher_logits": pick([-size, 0.0, size], batch.extras["teacher_logits"]),
        "first_tokens": pick([0.0], batch.extras["first_tokens"]),
        "teacher_states": pick([0.0, 1e4], batch.extras["teacher_states"]),
    }
    return replace(
        batch,
        exit_logits=pick([-size, 0.0, size], batch.exit_logits),
        certainty=pick([0.0, 1e-30, 0.5, 1.0], batch.certainty),
        states=pick([0.0], batch.states),
        extras=extras,
    )


@pytest.mark.parametrize("loss", LEARNS)
def test_nothing_is_nan_at_the_extremes(make, run, loss) -> None:
    for size, seed, training in product([0.0, 50.0, 1e4, 1e30], range(3), [True, False]):
        batch = extreme(make(rows=9, training=training), size, seed)
        value = run(loss, batch).sum()
        assert value.isfinite(), (size, seed)
        value.backward()
        for leaf in (batch.exit_logits, *inputs(batch).values(), *batch.heads.parameters()):
            assert leaf.grad is None or leaf.grad.isfinite().all(), (size, seed)


@pytest.mark.parametrize("loss", LEARNS)
def test_half_precision_comes_out_in_full(make, run, loss) -> None:
    batch = make()
    half = {name: getattr(batch, name).bfloat16() for name in ("exit_logits", "certainty")}
    extras = {k: v.bfloat16() if v.is_floating_point() else v for k, v in batch.extras.items()}
    assert run(loss, replace(batch, extras=extras, **half)).dtype == torch.float32


@pytest.mark.parametrize("loss", LEARNS)
def test_every_loss_gives_one_number_or_one_per_exit(make, run, loss) -> None:
    assert run(loss, make()).shape in {(), (3,), (4,)}


@pytest.mark.parametrize("loss", LEARNS)
def test_a_step_that_is_repeated_gives_the_same(make, run, loss) -> None:
    clock = Clock(step=3, total=9, seed=5)
    torch.rand(3)  # the global generator must not matter
    first = run(loss, make(clock=clock))
    torch.rand(1)
    torch.testing.assert_close(run(loss, make(clock=clock)), first, rtol=0, atol=0)
