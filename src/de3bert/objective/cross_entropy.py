"""Cross-entropy of every exit."""

from torch import Tensor

from de3bert.objective.objective import LOSSES, ExitBatch
from de3bert.objective.per_row import cross_entropies


@LOSSES.register("cross_entropy")
def cross_entropy(batch: ExitBatch) -> Tensor:
    """Mean cross-entropy over rows, (exits,)."""
    return cross_entropies(batch.exit_logits, batch.labels).mean(0)
