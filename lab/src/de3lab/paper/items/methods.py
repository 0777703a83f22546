"""Table II: early-exit methods at a layer speed-up of 2x and 3x."""

from __future__ import annotations

from functools import partial

from de3lab.paper.item import Finding, Item, Training
from de3lab.paper.judging import Verdict, above, not_below, points, unmeasured
from de3lab.paper.published import score_rows
from de3lab.paper.rivals import Rivals, above_all, at_speeds, study_sample, without_withdrawn
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import listed

__all__ = ["METHODS", "PUBLISHED"]

STUDY = "paper_methods"
PUBLISHED = score_rows("""
                         mnli      mrpc           qnli      qqp            rte       sst2
    1 full     BERT-base 84.6@1.00 f88.9@1.00     90.5@1.00 f71.2@1.00     66.4@1.00 93.5@1.00 -
    2 layers-6 BERT-6L   80.8@2.00 85.1/78.6@2.00 86.7@2.00 69.7/88.3@2.00 63.9@2.00 91.0@2.00 80.5
    2 deebert  DeeBERT   74.4@1.87 84.4/77.4@2.07 85.6@2.09 70.4/88.8@2.13 64.3@1.95 90.2@2.00 79.2
    2 pabee    PABEE     79.8@2.07 84.4/77.4@2.01 88.0@1.87 70.4/88.6@2.09 64.0@1.81 89.3@1.95 80.3
    2 berxit   BERxiT    74.5@2.06 84.3/77.2@1.99 85.5@1.98 70.2/88.5@2.01 64.2@1.97 90.2@1.98 79.1
    2 pcee     PCEE-BERT 81.0@1.98 86.1/80.2@2.02 87.9@2.04 70.8/89.1@2.02 65.7@1.99 91.0@2.04 81.5
    2 gpfee    GPFEE     83.3@1.96 87.0/81.8@1.98 89.8@1.97 71.2/89.4@2.18 64.5@2.04 92.8@2.02 82.5
    2 leebert  LeeBERT   83.1@1.97 f87.1@1.97     -         -              -         92.6@1.97 -
    2 de3      DE3-BERT  83.2@2.04 86.6/81.5@1.98 90.0@2.07 71.2/89.4@2.16 65.7@1.99 92.5@2.02 82.6
    2 cosee    COSEE     83.4@1.92 88.0/82.0@2.70 90.2@2.56 71.4/89.4@2.01 68.7@1.96 93.0@2.14 83.5
    2 de-cosee DE-COSEE  83.5@1.94 88.6/82.2@2.68 90.3@2.51 71.4/89.4@2.05 68.9@1.98 93.0@2.14 83.6
    3 layers-4 BERT-4L   77.6@3.00 82.9/74.9@3.00 85.4@3.00 67.7/87.5@3.00 63.0@3.00 88.7@3.00 78.5
    3 deebert  DeeBERT   61.0@2.80 83.5/75.5@2.61 80.8@2.88 66.1/86.9@3.19 60.5@2.90 84.7@2.71 73.8
    3 pabee    PABEE     75.9@2.70 82.6/73.1@2.72 82.6@3.04 69.5/88.2@2.57 60.5@2.38 85.2@3.15 76.8
    3 berxit   BERxiT    60.9@3.01 83.4/75.4@3.06 80.3@2.89 64.3/86.2@3.14 60.7@2.87 84.5@2.86 73.5
    3 pcee     PCEE-BERT 77.8@3.08 82.8/74.3@2.98 85.6@3.06 69.6/88.3@2.96 63.1@2.89 88.9@2.92 78.8
    3 gpfee    GPFEE     78.4@2.99 84.5/77.7@2.87 87.3@2.78 70.4/89.2@3.16 63.0@2.88 91.1@2.97 80.1
    3 de3      DE3-BERT  79.9@2.99 83.8/76.5@3.01 87.0@3.02 70.6/89.3@3.18 63.6@2.97 91.4@2.98 80.3
    3 cosee    COSEE     80.0@2.98 84.2/76.9@3.05 87.2@3.03 70.8/89.4@3.18 64.1@2.98 91.7@2.97 80.6
    3 de-cosee DE-COSEE  80.3@3.02 84.9/77.9@3.03 87.5@3.01 71.2/89.4@3.17 64.9@2.99 92.0@3.02 81.1
""")
RULES: Rivals = {
    "fixed depth": {"2": "layers-6", "3": "layers-4"},
    **at_speeds("deebert", "pabee", "berxit", "pcee"),
}


def above_rules(stored: Stored) -> Verdict:
    return above_all(stored, METHODS, RULES, "(mean of 2x and 3x)")


def level_with_other(stored: Stored, other: str) -> Verdict:
    """Not more than a point below GPFEE or LeeBERT, which improve exits, not rules."""
    document = stored.study(STUDY)
    if document is None:
        return unmeasured("methods")
    sample, tasks = study_sample(document, "de3", at_speeds(other)[other])
    if not sample:
        lacking = unmeasured("methods")
        return lacking.saying(without_withdrawn(lacking.statement, document, (other,)))
    said = f"DE3 less {other} {points(sample.mean)} (mean of 2x and 3x, {listed(tasks)})."
    return not_below(sample).saying(said)


def above_cosee(stored: Stored) -> Verdict:
    """DE-COSEE less COSEE."""
    document = stored.study(STUDY)
    if document is None:
        return unmeasured("methods")
    sample, tasks = study_sample(document, "de-cosee", at_speeds("cosee")["cosee"])
    if not sample:
        return unmeasured("methods")
    said = f"DE-COSEE less COSEE {points(sample.mean)} (mean of 2x and 3x, {listed(tasks)})."
    return above(sample).saying(said)


METHODS = Item(
    name="methods",
    references=("Table II",),
    labels=("tab:main_result",),
    title="Early-exit methods at a layer speed-up of 2x and 3x",
    shows="DE3 is above the methods that improve the exit rule at both speeds, by more at 3x, and "
    "level with GPFEE and LeeBERT; with COSEE's training (DE-COSEE) it is above COSEE.",
    setting="BERT-base, all training rows, settings searched for each task, GLUE test server",
    published=PUBLISHED,
    training=Training(STUDY),
    of_study=True,
    findings=(
        Finding("rules", "DE3 is above the other exit rules at 2x and 3x.", above_rules),
        Finding(
            "gpfee", "DE3 is level with GPFEE or above.", partial(level_with_other, other="gpfee")
        ),
        Finding(
            "leebert",
            "DE3 is level with LeeBERT or above.",
            partial(level_with_other, other="leebert"),
        ),
        Finding("cosee", "With COSEE's training, DE3's exit rule is above COSEE's.", above_cosee),
    ),
)
