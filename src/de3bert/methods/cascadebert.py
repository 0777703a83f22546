"""CascadeBERT: a small complete model first, and the big one from scratch where it is unsure."""

from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "cascadebert",
    Method(
        name="cascadebert",
        summary="a small complete model, then the whole backbone from scratch; easy rows surer",
        citation="Li et al., 2021: CascadeBERT",
        group="early exit",
        phases=(
            # Which rows are hard is found out by a small model of a few steps.
            Phase(
                (Term("cross_entropy", exits="internal"),), name="small", trains=("internal",),
                epochs="difficulty_epochs",
            ),
            Phase(
                (
                    Term("cross_entropy", exits="uniform"),
                    Term("difficulty_margin", weight="difficulty", needs=("difficult",)),
                ),
                name="together",
                hook="difficulty",
            ),
        ),
        families=("max_probability",),
        pooling="own_pooler",
        depth="cascade",
        options={
            "small": 2.0,  # layers of the small model
            "difficulty": 0.5,  # weight of the margin
            "margin": 0.5,  # wanted between the probabilities of easy and hard rows
            "difficulty_epochs": 1 / 3,  # of those of the recipe
        },
    ),
)  # fmt: skip
