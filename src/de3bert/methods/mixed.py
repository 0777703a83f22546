"""Mixed training: the encoder first, alone; then the encoder and all exits together."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "mixed",
    Method(
        name="mixed",
        summary="fine-tuning first, then encoder and all exits together; entropy rule",
        citation="Kubaty et al., 2025: How to Train Your Multi-Exit Model?",
        group="early exit",
        phases=(
            Phase(TASK.terms, name="fine-tune", judge="last", epochs="fine_tune"),
            Phase((Term("cross_entropy"),), name="together", epochs="joint_epochs"),
        ),
        families=("entropy",),
        # Halves, so that the whole takes as many steps as one joint training.
        options={"fine_tune": 0.5, "joint_epochs": 0.5},
    ),
)
