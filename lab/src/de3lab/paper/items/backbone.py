"""Table IV: another encoder."""

from __future__ import annotations

from de3lab.paper.item import Finding, Item, Training
from de3lab.paper.judging import Verdict
from de3lab.paper.published import score_rows
from de3lab.paper.rivals import Rivals, above_all, at_speeds
from de3lab.paper.stored import Stored

__all__ = ["BACKBONE"]

# A third of the layers: four of RoBERTa's twelve, two of the six of the encoder here.
PUBLISHED = score_rows("""
                            mnli qnli qqp   sst2
    1 full     RoBERTa-base 87.0 92.4 f71.8 94.3 86.4
    3 layers-2 RoBERTa-4L   80.3 86.2 f69.8 90.8 81.8
    3 deebert  DeeBERT      53.9 77.2 f67.6 88.6 71.8
    3 pabee    PABEE        74.0 -    -     87.5 -
    3 gpfee    GPFEE        81.4 89.2 f71.9 93.5 84.0
    3 de3      DE3-RoBERTa  83.1 89.3 f71.6 93.7 84.4
""")
RIVALS: Rivals = {
    "fixed depth": {"3": "layers-2"},
    **at_speeds("deebert", "pabee", "gpfee", speeds=("3",)),
}


def above_elsewhere(stored: Stored) -> Verdict:
    return above_all(stored, BACKBONE, RIVALS, "at 3x")


BACKBONE = Item(
    name="backbone",
    references=("Table IV",),
    labels=("tab:generalization",),
    title="Another encoder at a layer speed-up of 3x",
    shows="With RoBERTa-base DE3 is above the other early-exit methods on three of four tasks.",
    setting="RoBERTa-base, all training rows, GLUE test server",
    published=PUBLISHED,
    training=Training("paper_minilm"),
    of_study=True,
    findings=(
        Finding(
            "backbone",
            "It holds for a second encoder: DE3 is above the others at 3x.",
            above_elsewhere,
        ),
    ),
)
