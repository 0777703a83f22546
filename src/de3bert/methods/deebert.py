"""DeeBERT: fine-tune first, then train the internal exits on the frozen model."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "deebert",
    Method(
        name="deebert",
        summary="two stages: fine-tuning, then exits on the frozen encoder; entropy rule",
        citation="Xin et al., 2020: DeeBERT",
        group="early exit",
        phases=(
            Phase(TASK.terms, name="fine-tune", judge="last"),
            Phase((Term("cross_entropy", exits="internal"),), name="exits", trains=("internal",)),
        ),
        families=("entropy",),
        options={"poolers": "none"},  # the original head has a "copied" one per exit
    ),
)
