"""GPFEE: every exit reads the exits before it and predicts those after it."""

from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "gpfee",
    Method(
        name="gpfee",
        summary="past states and predicted future states of all layers; entropy rule",
        citation="Liao et al., 2021: A Global Past-Future Early Exit Method",
        group="early exit",
        phases=(Phase((Term("cross_entropy", weight=0.5), Term("imitation", weight=0.5))),),
        families=("entropy",),
        pooling="own_pooler",
        heads="fused",
        options={
            "poolers": "fresh",  # of every exit, as in the authors' code; or "copied", "none"
            "future": 1.0,  # 0 leaves the predicted states out
            "thaw": 2.0,  # the lowest layers that thaw in the course of the training
        },
    ),
)
