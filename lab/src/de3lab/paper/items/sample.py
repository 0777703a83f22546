"""Fig. 1: one text, layer by layer."""

from __future__ import annotations

from de3lab.paper.item import Item, Measurement, Training
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.tasks import DEV

__all__ = ["SAMPLE"]

SAMPLE = Item(
    name="sample",
    references=("Fig. 1",),
    labels=("fig:intro_entropy",),
    title="A confident answer need not be right",
    shows="On one pair of questions of QQP the first exit is wrong with a low entropy, and the "
    "sixth is right with a high one.",
    setting="BERT-base, one pair of questions of QQP",
    training=Training("paper_methods", ("de3",), ("qqp", "sst2")),
    measurement=Measurement(
        "sample", {"de3": "de3"}, rows=DEV, settings=LAMBDAS_OF, of="texts", seeds="first"
    ),
)
