"""Table VIII: Chinese."""

from __future__ import annotations

from de3lab.paper.item import Finding, Item, Training
from de3lab.paper.judging import Verdict
from de3lab.paper.published import score_rows
from de3lab.paper.rivals import above_all, at_speeds
from de3lab.paper.stored import Stored

__all__ = ["CHINESE"]

PUBLISHED = score_rows("""
                      lcqmc     thucnews
    1 full  BERT-base 86.7@1.00 96.7@1.00 -
    3 gpfee GPFEE     84.9@3.01 96.1@3.05 -
    3 de3   DE3-BERT  85.7@2.98 96.6@3.02 -
""")


def above_in_chinese(stored: Stored) -> Verdict:
    return above_all(stored, CHINESE, at_speeds("gpfee", speeds=("3",)), "at 3x")


CHINESE = Item(
    name="chinese",
    references=("Table VIII",),
    labels=("tab:chinese_cls",),
    title="Chinese, at a layer speed-up of 3x",
    shows="With a Chinese BERT-base DE3 is above GPFEE on LCQMC and THUCNews.",
    setting="bert-base-chinese (12 layers), all training rows, THUCNews with 14 classes, "
    "mean of five runs",
    published=PUBLISHED,
    training=Training("paper_chinese"),
    of_study=True,
    findings=(
        Finding("chinese", "It holds for Chinese: DE3 is above GPFEE at 3x.", above_in_chinese),
    ),
)
