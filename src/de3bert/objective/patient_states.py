"""Patient distillation: the student's layers follow the teacher's (BERT-PKD)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from de3bert.errors import UsageError
from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, ExitBatch

__all__ = ["patient_states", "state_difference"]

NAME = "patient_states"


@LOSSES.register(NAME)
def patient_states(batch: ExitBatch) -> Tensor:
    """PT: the difference of first-token states, student layers 1..L-1 against the teacher's, ().

    Reads `first_tokens`, the student's states of all its L layers, and `teacher_states`, those of
    the teacher's layers that belong to them, in the same order. The last layer has the logits to
    learn from and is left out: a teacher's state for it may be there, but is not read.
    """
    student = needs.extra(
        batch, "first_tokens", NAME, "the student's first-token states, (rows, layers, hidden)"
    )
    teacher = needs.extra(
        batch, "teacher_states", NAME, "the matching ones of the teacher, (rows, layers, hidden)"
    )
    layers = student.shape[1]
    if layers < 2 or teacher.shape[1] not in (layers - 1, layers):
        raise UsageError(
            f'The loss "{NAME}" compares all layers but the last. The student has {layers}; the '
            f"teacher's states must be of {layers - 1} or {layers} layers, got {teacher.shape[1]}."
        )
    if teacher.shape[2] != student.shape[2]:
        raise UsageError(
            f"States of the teacher are {teacher.shape[2]} wide, those of the student "
            f"{student.shape[2]}. Use a teacher of the student's width."
        )
    return state_difference(student[:, : layers - 1], teacher[:, : layers - 1])


def state_difference(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean over all elements of (s/|s| - t/|t|)^2, the teacher's t constant. (..., hidden) -> ()"""
    wanted = functional.normalize(teacher.detach().float(), dim=-1)
    return (functional.normalize(student.float(), dim=-1) - wanted).square().mean()
