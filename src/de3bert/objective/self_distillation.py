"""Self-distillation: internal exits learn what the final exit says (FastBERT)."""

from __future__ import annotations

from torch import Tensor

from de3bert.objective.divergence import softened_kl
from de3bert.objective.needs import word
from de3bert.objective.objective import LOSSES, ExitBatch


@LOSSES.register("self_distillation")
def self_distillation(batch: ExitBatch) -> Tensor:
    """KL between the final exit and every internal one, mean over rows, (exits - 1,).

    The final exit's logits are constants, and no labels are read. Option `direction`: `teacher`,
    KL(teacher || student), as the authors' code has it; `student`, KL(student || teacher), as the
    paper writes it.
    """
    direction = word(batch.options, "direction", ("teacher", "student"))
    teacher, students = batch.exit_logits[:, -1:].detach(), batch.exit_logits[:, :-1]
    if direction == "student":
        return softened_kl(students, teacher).mean(0)
    return softened_kl(teacher, students).mean(0)
