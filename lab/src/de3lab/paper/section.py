"""A table or figure of the paper as a section of the report: what there is, before any markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from de3lab.analysis import ANALYSES
from de3lab.paper.item import Finding, Item
from de3lab.paper.judging import Verdict
from de3lab.paper.method_tables import method_tables
from de3lab.paper.pictures import Picture, result_picture, study_pictures
from de3lab.paper.settings import here, state_of
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import class_names, task_name
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


def build_section(item: Item, stored: Stored, verdicts: Mapping[str, Verdict]) -> Section:
    """Everything about one item from what is stored."""
    state, measured = state_of(item, stored)
    return Section(
        item=item,
        state=state,
        measured=measured,
        tables=method_tables(item, stored) if item.of_study else item.tables(stored),
        pictures=_pictures(item, stored),
        details=_details(item, stored),
        setting=here(item, stored),
        findings=[(finding, verdicts[finding.name]) for finding in item.findings],
    )


def _pictures(item: Item, stored: Stored) -> list[Picture]:
    if item.of_study and item.measurement is None:
        return study_pictures(item, stored)
    made = (result_picture(item, task, doc) for task, doc in stored.results(item).items())
    return [picture for picture in made if picture is not None]


def _details(item: Item, stored: Stored) -> list[Details]:
    return [
        Details(
            f"{task_name(task)}: all numbers",
            ANALYSES[document.analysis].tables(class_names(task, document.numbers)),
        )
        for task, document in stored.results(item).items()
    ]
