"""Learning to exit: the router learns to say where an exit is right (BERxiT)."""

from __future__ import annotations

from torch import Tensor

from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, ExitBatch
from de3bert.objective.per_row import correct

NAME = "router_error"


@LOSSES.register(NAME)
def router_error(batch: ExitBatch) -> Tensor:
    """J = mean over rows and internal exits of (certainty - target)^2, ().

    The target is 1 where the exit is right and 0 where it is wrong, a constant. The certainty is
    not cut off from what it was computed from: J also trains pooling and encoder.
    """
    needs.internal_exits(batch, NAME)
    target = correct(batch.exit_logits[:, :-1], batch.labels).float()
    return (needs.certainty(batch, NAME) - target).square().mean()
