"""Cross-entropy of every exit."""

from torch import Tensor
from torch.nn import functional

from de3bert.objective.objective import LOSSES, ExitBatch


@LOSSES.register("cross_entropy")
def cross_entropy(batch: ExitBatch) -> Tensor:
    """Mean cross-entropy over rows, (exits,)."""
    logits = batch.exit_logits.float().transpose(1, 2)  # (rows, classes, exits)
    labels = batch.labels[:, None].expand(-1, logits.shape[2])
    return functional.cross_entropy(logits, labels, reduction="none").mean(0)
