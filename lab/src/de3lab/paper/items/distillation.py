"""Table III: distilled students of half the layers."""

from __future__ import annotations

from de3lab.paper.item import Finding, Item, Training
from de3lab.paper.judging import Verdict
from de3lab.paper.published import score_rows
from de3lab.paper.rivals import above_all, at_speeds
from de3lab.paper.stored import Stored

__all__ = ["DISTILLATION"]

PUBLISHED = score_rows("""
                                 mnli qnli qqp  sst2
    2 distilbert DistilBERT      81.9 88.2 88.4 92.1 87.7
    2 pd         PD-BERT         82.8 88.9 88.9 91.8 88.1
    2 pkd        BERT-PKD        81.5 89.0 88.9 92.0 87.9
    2 theseus    BERT-of-Theseus 82.4 89.6 89.3 92.2 88.4
    2 de3        DE3-BERT        83.2 90.0 89.4 92.5 88.8
""")
STUDENTS = at_speeds("distilbert", "pd", "pkd", "theseus", speeds=("2",))


def above_students(stored: Stored) -> Verdict:
    return above_all(stored, DISTILLATION, STUDENTS, "at 2x")


DISTILLATION = Item(
    name="distillation",
    references=("Table III",),
    labels=("tab:compare_static_methods",),
    title="Distilled students of half the layers, and DE3 at 2x",
    shows="DE3 at a layer speed-up of 2x is above all students of six layers on all four tasks.",
    setting="BERT-base, all training rows, GLUE test server; students as their authors report them",
    published=PUBLISHED,
    training=Training("paper_distillation"),
    of_study=True,
    findings=(
        Finding(
            "students",
            "DE3 at 2x is above distilled students of half the layers.",
            above_students,
        ),
    ),
)
