"""BERxiT: alternate between the last exit and all exits; one shared head learns when to leave."""

from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "berxit",
    Method(
        name="berxit",
        summary="alternating fine-tuning; a shared head learns whether an exit is right",
        citation="Xin et al., 2021: BERxiT",
        group="early exit",
        phases=(
            Phase(
                (
                    Term("cross_entropy", exits="last", steps="even"),
                    Term("cross_entropy", exits="uniform", steps="odd"),
                    Term("router_error"),
                )
            ),
        ),
        families=("certainty",),
        pooling="own_pooler",
        router="lte",
        options={"poolers": "copied"},  # of every exit; "none" leaves them out
    ),
)
