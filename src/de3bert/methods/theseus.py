"""BERT-of-Theseus: single layers take the place of the fine-tuned model's pairs, step by step."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase

METHODS.add(
    "theseus",
    Method(
        name="theseus",
        summary="half of the layers, each trained in the place of two of a fine-tuned model",
        citation="Xu et al., 2020: BERT-of-Theseus",
        group="distillation",
        phases=(Phase(TASK.terms, trains=("layers",), hook="replacing", judge="last"),),
        families=("layers",),
        internal_exits=False,
        depth="first",
        teacher="full",
        options={
            "layers": 0.0,  # 0: half of the backbone's
            "schedule": "linear",  # how the chance to be replaced grows; or `constant`
            "rate": 0.3,  # at the start
            "replacing": 0.5,  # share of the steps after which all are replaced
        },
    ),
)
