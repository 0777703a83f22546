"""FastBERT: small attention heads, taught by the last one on a frozen encoder."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "fastbert",
    Method(
        name="fastbert",
        summary="two stages: fine-tuning, then attention heads learn from the last; entropy rule",
        citation="Liu et al., 2020: FastBERT",
        group="early exit",
        phases=(
            Phase(TASK.terms, name="fine-tune", judge="last"),
            Phase(
                (Term("self_distillation", exits="uniform"),), name="distil", trains=("internal",)
            ),
        ),
        families=("entropy",),
        heads="attention",
        pooling="cls",  # the heads read all tokens; a pooler would learn nothing
        options={
            "head_size": 128.0,
            "direction": "teacher",  # KL(teacher || student); `student` turns it round
        },
    ),
)
