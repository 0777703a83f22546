"""How far one softened distribution is from another."""

from __future__ import annotations

from torch import Tensor

__all__ = ["softened_kl"]


def softened_kl(teacher: Tensor, student: Tensor, temperature: float = 1.0) -> Tensor:
    """KL(softmax(z_t / T) || softmax(z_s / T)) along the last axis. (..., K), (..., K) -> (...)

    Shapes broadcast. Written out from log-softmax, so that a saturated softmax gives 0 and not
    NaN. Nothing is detached here: which side is the teacher for the gradient is the caller's say.
    """
    given = (teacher.float() / temperature).log_softmax(-1)
    wanted = (student.float() / temperature).log_softmax(-1)
    return (given.exp() * (given - wanted)).sum(-1)
