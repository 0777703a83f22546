"""CascadeBERT: a small complete model first, and the big one from scratch where it is unsure."""

from dataclasses import replace

from de3bert.methods.method import METHODS, Method, Phase, Term

CASCADE = Method(
    name="cascadebert",
    summary="a small pre-trained encoder, then the whole backbone from scratch; easy rows surer",
    citation="Li et al., 2021: CascadeBERT",
    group="early exit",
    phases=(
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
    cascade="own",
    options={
        "poolers": "copied",  # of each model, its own where it has one; "none" leaves them out
        "difficulty": 0.5,  # weight of the margin
        "margin": 0.5,  # wanted between the probabilities of easy and hard rows
        "folds": 3.0,  # models that judge which rows are hard, each the rows it has not seen
        "difficulty_epochs": 0.5,  # of each of them, as a share of the recipe's
    },
)

METHODS.add("cascadebert", CASCADE)
METHODS.add(
    "cascade-truncated",
    replace(
        CASCADE,
        name="cascade-truncated",
        summary="the same with the backbone's own first layers as the small model",
        citation="after Li et al., 2021: CascadeBERT, who argue against truncated models",
        cascade="truncated",
        options={"small": 2.0, **CASCADE.options},  # layers of the small model
    ),
)
