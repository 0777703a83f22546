"""Learning from logits and states of a teacher, or from the model's own last exit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from de3bert.errors import UsageError
from de3bert.objective import ExitBatch
from de3bert.objective.divergence import softened_kl
from de3bert.objective.patient_states import patient_states, state_difference
from de3bert.objective.self_distillation import self_distillation
from de3bert.objective.teacher_logits import knowledge, soft_labels

TEACHER, STUDENT = torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([[1.0, 0.5, 0.0]])


def softmax(logits: list[float], temperature: float = 1.0) -> list[float]:
    weights = [math.exp(z / temperature) for z in logits]
    return [weight / sum(weights) for weight in weights]


def slow_kl(first: list[float], second: list[float], temperature: float = 1.0) -> float:
    pairs = zip(softmax(first, temperature), softmax(second, temperature), strict=True)
    return sum(p * math.log(p / q) for p, q in pairs)


def taught(temperature: float = 1.0) -> ExitBatch:
    return ExitBatch(
        STUDENT[:, None],
        torch.tensor([0]),
        None,
        {"temperature": temperature},
        extras={"teacher_logits": TEACHER},
    )


def test_known_divergences() -> None:
    assert softened_kl(TEACHER, STUDENT).item() == pytest.approx(0.255111, abs=1e-6)
    assert softened_kl(STUDENT, TEACHER).item() == pytest.approx(0.323018, abs=1e-6)
    assert softened_kl(TEACHER, STUDENT, 2.0).item() == pytest.approx(0.091307, abs=1e-6)
    assert softened_kl(TEACHER, TEACHER, 2.0).item() == 0.0


def test_known_losses() -> None:
    assert soft_labels(taught()).item() == pytest.approx(0.779377, abs=1e-6)
    assert knowledge(taught(1.0)).item() == pytest.approx(0.255111, abs=1e-6)
    assert knowledge(taught(2.0)).item() == pytest.approx(0.365228, abs=1e-6)
    assert knowledge(taught(10.0)).item() == pytest.approx(0.374681, abs=1e-5)
    plain = replace(taught(), options={})
    assert knowledge(plain).item() == knowledge(taught(10.0)).item()


def test_known_state_difference() -> None:
    first, second = torch.tensor([[[3.0, 4.0]]]), torch.tensor([[[4.0, 3.0]]])
    assert state_difference(first, second).item() == pytest.approx(0.04)
    assert 2 * state_difference(first, second).item() == pytest.approx(0.08)  # summed over hidden
    assert state_difference(7 * first, second / 3).item() == pytest.approx(0.04)


def rows_of(values: Tensor) -> list[list[float]]:
    return values.detach().double().tolist()


def test_the_teacher_against_a_loop(make) -> None:
    batch = make(options={"temperature": 3.0})
    teacher, student = rows_of(batch.extras["teacher_logits"]), rows_of(batch.exit_logits[:, -1])
    pairs = list(zip(teacher, student, strict=True))
    expected = 9 * sum(slow_kl(t, s, 3.0) for t, s in pairs) / len(pairs)
    assert knowledge(batch).item() == pytest.approx(expected, abs=1e-5)
    soft = [
        -sum(p * math.log(q) for p, q in zip(softmax(t), softmax(s), strict=True)) for t, s in pairs
    ]
    assert soft_labels(batch).item() == pytest.approx(sum(soft) / len(soft), abs=1e-5)


@pytest.mark.parametrize("direction", ["teacher", "student", None])
def test_self_distillation_against_a_loop(make, direction) -> None:
    batch = make(options={"direction": direction} if direction else {})
    found = self_distillation(batch)
    assert found.shape == (3,)
    teacher = rows_of(batch.exit_logits[:, -1])
    for index in range(3):
        pairs = zip(teacher, rows_of(batch.exit_logits[:, index]), strict=True)
        values = [slow_kl(s, t) if direction == "student" else slow_kl(t, s) for t, s in pairs]
        assert found[index].item() == pytest.approx(sum(values) / len(values), abs=1e-5)


def test_self_distillation_needs_no_labels(make) -> None:
    batch = make()
    moved = replace(batch, labels=(batch.labels + 1) % 3)
    assert torch.equal(self_distillation(batch), self_distillation(moved))
    assert torch.equal(soft_labels(batch), soft_labels(moved))


def test_internal_exits_that_agree_with_the_last_have_nothing_to_learn(make) -> None:
    last = make().exit_logits[:, -1:].detach()
    values = self_distillation(make(exit_logits=last.expand(-1, 4, -1)))
    assert values.tolist() == pytest.approx([0.0] * 3, abs=1e-6)


def slow_patience(student: list, teacher: list) -> float:
    squares = []
    for ours, theirs in zip(student, teacher, strict=True):
        for s, t in zip(ours[:-1], theirs, strict=False):  # all layers of the student but the last
            lengths = math.hypot(*s), math.hypot(*t)
            squares += [(a / lengths[0] - b / lengths[1]) ** 2 for a, b in zip(s, t, strict=True)]
    return sum(squares) / len(squares)


def test_patience_against_a_loop(make) -> None:
    batch = make()
    student, teacher = batch.extras["first_tokens"], batch.extras["teacher_states"]
    expected = slow_patience(student.tolist(), teacher.tolist())
    assert patient_states(batch).item() == pytest.approx(expected, abs=1e-6)
    # A state of the teacher for the last layer changes nothing.
    longer = {**batch.extras, "teacher_states": torch.cat([teacher, torch.ones(6, 1, 6)], 1)}
    assert patient_states(replace(batch, extras=longer)).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("layers", [1, 4])
def test_layers_must_match(make, layers) -> None:
    batch = make()
    extras = {**batch.extras, "teacher_states": torch.ones(6, layers, 6)}
    with pytest.raises(UsageError, match=f"must be of 2 or 3 layers, got {layers}"):
        patient_states(replace(batch, extras=extras))


def test_a_student_of_one_layer_has_nothing_to_match(make) -> None:
    batch = make()
    one = torch.ones(6, 1, 6)
    extras = {**batch.extras, "first_tokens": one, "teacher_states": one}
    with pytest.raises(UsageError, match="all layers but the last"):
        patient_states(replace(batch, extras=extras))


def test_widths_must_match(make) -> None:
    batch = make()
    extras = {**batch.extras, "teacher_states": torch.ones(6, 2, 8)}
    with pytest.raises(UsageError, match="8 wide, those of the student 6"):
        patient_states(replace(batch, extras=extras))


@pytest.mark.parametrize("loss", [soft_labels, knowledge])
def test_a_teacher_of_other_labels_is_refused(make, loss) -> None:
    batch = make()
    extras = {**batch.extras, "teacher_logits": torch.zeros(6, 2)}
    with pytest.raises(UsageError, match="made for the same labels"):
        loss(replace(batch, extras=extras))
