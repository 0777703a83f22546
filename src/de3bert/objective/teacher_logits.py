"""Learning from the logits of a teacher model: soft labels and softened divergence."""

from __future__ import annotations

from torch import Tensor

from de3bert.errors import UsageError
from de3bert.objective import needs
from de3bert.objective.divergence import softened_kl
from de3bert.objective.objective import LOSSES, ExitBatch

MEANING = "the teacher's logits, (rows, classes)"


@LOSSES.register("soft_labels")
def soft_labels(batch: ExitBatch) -> Tensor:
    """- sum_k softmax(z_t)_k log softmax(z_s)_k of the final exit, mean over rows, () (PD-BERT).

    No labels are read: text alone will do.
    """
    teacher, student = _both(batch, "soft_labels")
    return -(teacher.softmax(-1) * student.log_softmax(-1)).sum(-1).mean()


@LOSSES.register("knowledge")
def knowledge(batch: ExitBatch) -> Tensor:
    """T^2 KL(softmax(z_t/T) || softmax(z_s/T)) of the final exit, mean over rows, () (BERT-PKD).

    Option `temperature`: T, 10 by default. The mean is over rows, as in the paper; the authors'
    code also divides by the number of classes.
    """
    temperature = needs.number(batch.options, "temperature", 10.0, positive=True)
    teacher, student = _both(batch, "knowledge")
    return temperature**2 * softened_kl(teacher, student, temperature).mean()


def _both(batch: ExitBatch, loss: str) -> tuple[Tensor, Tensor]:
    """The logits of the teacher (constants) and of the student, (rows, classes) each."""
    teacher = needs.extra(batch, "teacher_logits", loss, MEANING).detach().float()
    student = batch.exit_logits[:, -1].float()
    if teacher.shape != student.shape:
        raise UsageError(
            f"The teacher's logits are {tuple(teacher.shape)} (rows, classes), the student's "
            f"{tuple(student.shape)}. Teacher and student must be made for the same labels."
        )
    return teacher, student
