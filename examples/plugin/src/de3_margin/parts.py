"""What the method is trained with: heads with a narrow layer, and a loss with smoothed labels."""

from torch import nn
from torch.nn import functional

from de3bert.model.head import HEADS, Heads
from de3bert.objective import LOSSES


@HEADS.register("bottleneck")
class BottleneckHeads(Heads):
    """z = W gelu(V dropout(s)): a layer of 16 between the vector s of an exit and its logits."""

    def __init__(self, settings):
        super().__init__(settings)
        width, classes = settings.hidden_size, settings.classes
        self.exits = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, classes))
            for _ in range(settings.exits)
        )

    def forward(self, reading, exit_index):
        """(rows, hidden) -> (rows, classes)"""
        return self.exits[exit_index](self.dropout(reading.pooled))


@LOSSES.register("smoothed")
def smoothed(batch):
    """Cross-entropy with a share of each label spread over all classes. -> (exits,)"""
    by_class = batch.exit_logits.transpose(1, 2)  # (rows, classes, exits)
    labels = batch.labels[:, None].expand(-1, by_class.shape[-1])
    spread = float(batch.options["smoothing"])
    losses = functional.cross_entropy(by_class, labels, label_smoothing=spread, reduction="none")
    return losses.mean(0)
