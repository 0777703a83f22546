"""The result of an analysis: what was asked, of what, by which command, and the numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from de3lab.documents.document import Document, Part

__all__ = ["AnalysisResult", "Source", "SubjectFacts"]


class SubjectFacts(Part):
    """A model or trace that was asked; of paths only the name, since results travel."""

    label: str
    name: str
    method: str | None = None
    rows: int | None = None
    model: str | None = None
    data: dict[str, str | None] | None = None


class Source(Part):
    """Which runs a table or figure of the paper was measured on: label -> their keys."""

    item: str
    task: str
    test: str
    runs: dict[str, list[str]]
    adapted: dict[str, str]


class AnalysisResult(Document):
    """`result.json`; `numbers` are the analysis' own, its tables and figure are made of them.

    Attributes:
        source: for a table or figure of the paper, as are `backbone`, `training_rows`, `seeds`.
    """

    FORMAT: ClassVar[str] = "de3bert-analysis"
    WHAT: ClassVar[str] = "the result of an analysis"

    analysis: str
    title: str
    paper: str
    command: str
    seed: int | None
    machine: str
    versions: dict[str, str]
    date: str
    settings: dict[str, Any]
    subjects: list[SubjectFacts]
    numbers: dict[str, Any]
    source: Source | None = None
    backbone: str | None = None
    training_rows: int | None = None
    seeds: list[int] | None = None
