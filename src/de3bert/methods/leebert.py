"""LeeBERT: exits teach one another; how much each counts is learned along with them."""

from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "leebert",
    Method(
        name="leebert",
        summary="learned weights of exits and of distillation between them; patience rule",
        citation="Zhu, 2021: LeeBERT",
        group="early exit",
        phases=(Phase((Term("learned_distillation"),), hook="row_numbers"),),
        families=("patience",),
        options={
            "kd": 1.0,  # sum of the weights of all distillation terms
            "temperature": 2.0,
            "from": "all",  # learn from all other exits, or from `later` ones only
            "halves": "crossed",  # each half of the rows is held out from a step on the other
            "rho": 1.0,  # share of the first half in the step of the weights
            "unroll": 1.0,  # weights follow the held-out loss after a step of the heads
            "inner_rate": 0.01,
            "weights_rate": 0.01,  # learning rate of the weights
        },
    ),
)
