"""Fig. 5: what prototypical networks and the regulariser give."""

from __future__ import annotations

from de3lab.paper.gains import above_other, difference_tables
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.judging import Verdict
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, FOUR

__all__ = ["COMPONENTS"]


def networks_help(stored: Stored) -> Verdict:
    return above_other(stored, COMPONENTS, "de3", "w/o PN")


def regulariser_helps(stored: Stored) -> Verdict:
    return above_other(stored, COMPONENTS, "w/o PN", "w/o PN w/o DAR")


COMPONENTS: Item = Item(
    name="components",
    references=("Fig. 5",),
    labels=("fig:ablation_dar_pn",),
    title="What prototypical networks and the regulariser give",
    shows="Without prototypical networks (PN) the trade-off is worse, and without the regulariser "
    "(DAR) worse again.",
    setting="BERT-base, all training rows, development sets",
    training=Training("paper_components", (), FOUR),
    measurement=Measurement(
        "components",
        {"de3": "de3", "w/o PN": "de3-no-pn", "w/o PN w/o DAR": "de3-no-pn-no-dar"},
        rows=DEV,
        settings=LAMBDAS_OF,
    ),
    tables=lambda stored: difference_tables(stored.results(COMPONENTS), "What the parts give"),
    findings=(
        Finding("regulariser", "The distance-aware regulariser helps.", regulariser_helps),
        Finding("networks", "Prototypical networks help.", networks_help),
    ),
)
