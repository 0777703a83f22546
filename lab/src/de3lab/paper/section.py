"""A table or figure of the paper as a section of the report: what there is, before any markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from de3lab.analysis import ANALYSES
from de3lab.paper.beside_costs import cost_tables
from de3lab.paper.beside_curves import (
    alpha_tables,
    difference_tables,
    lambda_tables,
    shift_tables,
)
from de3lab.paper.beside_settings import baseline_tables, data_tables, hyperparameter_tables
from de3lab.paper.beside_signals import (
    correctness_tables,
    exit_tables,
    homogeneity_tables,
    speed_tables,
)
from de3lab.paper.beside_study import study_tables
from de3lab.paper.findings import FINDINGS
from de3lab.paper.item import Item
from de3lab.paper.names import task_name
from de3lab.paper.pictures import Picture, result_picture, study_pictures
from de3lab.paper.settings import here, state_of
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict
from de3lab.tabular import Grid

__all__ = ["Details", "Section", "build_section"]


@dataclass(frozen=True)
class Details:
    """All tables of one analysis, which a reader may want to fold away."""

    title: str
    tables: Sequence[Grid]


@dataclass(frozen=True)
class Section:
    """What the report says of an item.

    Attributes:
        state: what is stored, in a few words.
        measured: whether anything is.
        tables: ours beside the published numbers.
        pictures: our figures.
        details: the tables of each analysis.
        setting: how ours was measured: backbone, rows, seeds, date, machine.
        findings: what is judged by it, with the verdicts.
    """

    item: Item
    state: str
    measured: bool
    tables: Sequence[Grid]
    pictures: Sequence[Picture]
    details: Sequence[Details]
    setting: Sequence[str]
    findings: Sequence[tuple[Finding, Verdict]]


def _differences(name: str, title: str) -> Callable[[Stored], list[Grid]]:
    return lambda stored: difference_tables(stored.results(name), title)


TABLES: Mapping[str, Callable[[Stored], list[Grid]]] = {
    "data": data_tables,
    "baselines": lambda stored: baseline_tables(),
    "hyperparameters": hyperparameter_tables,
    "indicator": _differences("indicator", "What the distance ratio gives"),
    "one-rate": _differences("one-rate", "What the distance ratio gives with one rate"),
    "components": _differences("components", "What the parts give"),
    "exit-layers": exit_tables,
    "speed": speed_tables,
    "shift": shift_tables,
    "lambda": lambda_tables,
    "alpha": alpha_tables,
    "correctness": correctness_tables,
    "one-rate-correctness": partial(correctness_tables, item="one-rate-correctness"),
    "costs": cost_tables,
    "homogeneity": homogeneity_tables,
}
STUDY_TABLES = ("methods", "distillation", "backbone", "chinese", "dar-forms")


def build_section(item: Item, stored: Stored, verdicts: Mapping[str, Verdict]) -> Section:
    """Everything about one item from what is stored."""
    state, measured = state_of(item, stored)
    return Section(
        item=item,
        state=state,
        measured=measured,
        tables=_tables(item, stored),
        pictures=_pictures(item, stored),
        details=_details(item, stored),
        setting=here(item, stored),
        findings=[(f, verdicts[f.name]) for f in FINDINGS if item.name in f.items],
    )


def _tables(item: Item, stored: Stored) -> list[Grid]:
    tables = study_tables(item, stored) if item.name in STUDY_TABLES else []
    if item.name in TABLES:
        tables += TABLES[item.name](stored)
    return tables


def _pictures(item: Item, stored: Stored) -> list[Picture]:
    found = [result_picture(item, task, doc) for task, doc in stored.results(item).items()]
    if item.name in STUDY_TABLES and item.measured is None:
        found += study_pictures(item, stored)
    return found


def _details(item: Item, stored: Stored) -> list[Details]:
    return [
        Details(
            f"{task_name(task)}: all numbers",
            ANALYSES[document["analysis"]].tables(document["numbers"]),
        )
        for task, document in stored.results(item).items()
    ]
