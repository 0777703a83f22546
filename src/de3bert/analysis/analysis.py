"""What an analysis is: numbers measured on subjects, and a table and a figure of those numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from de3bert.analysis.subject import Subject
from de3bert.errors import UsageError
from de3bert.registry import Registry
from de3bert.tabular import Grid

__all__ = ["ANALYSES", "Analysis", "resolve"]

Numbers = Mapping[str, Any]
Measure = Callable[[Sequence[Subject], Numbers], dict[str, Any]]


@dataclass(frozen=True)
class Analysis:
    """One question that can be asked of models or traces.

    Tables and figures are functions of the numbers alone, so that a stored result is drawn again
    without any model.

    Attributes:
        name: as `de3 analyze NAME` has it.
        title: what a figure or a table of it is called.
        summary: what it answers, in one line.
        paper: the table or figure of the paper, such as "Fig. 5".
        measure: (subjects, settings) -> numbers that fit in JSON.
        tables: numbers -> tables.
        draw: (path, numbers) -> writes the figure; the path's end says the format.
        settings: name -> default of every setting it takes; others are refused.
        labels: how many differently labelled subjects it compares: (least, most or None).
        needs_model: whether a trace is not enough.
    """

    name: str
    title: str
    summary: str
    paper: str
    measure: Measure
    tables: Callable[[Numbers], list[Grid]]
    draw: Callable[[Path, Numbers], None]
    settings: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[int, int | None] = (1, 1)
    needs_model: bool = False


ANALYSES: Registry[Analysis] = Registry("analysis")


def resolve(analysis: Analysis, given: Numbers) -> dict[str, Any]:
    """The settings of an analysis: its own, replaced by those given; UsageError for others."""
    for name in given:
        if name not in analysis.settings:
            takes = ", ".join(analysis.settings) or "none"
            raise UsageError(
                f"`{analysis.name}` does not take the setting {name}. It takes: {takes}."
            )
    return {**analysis.settings, **given}


def check_subjects(analysis: Analysis, subjects: Sequence[Subject]) -> None:
    """Refuses too few, too many, or traces where a model is needed."""
    labels = list(dict.fromkeys(subject.label for subject in subjects))
    least, most = analysis.labels
    if len(labels) < least or (most is not None and len(labels) > most):
        wanted = f"{least}" if least == most else f"{least} or more"
        if most is not None and least != most:
            wanted = f"{least} to {most}"
        raise UsageError(
            f"`{analysis.name}` compares {wanted} kinds of models, got {len(labels)}: "
            f"{', '.join(labels) or 'none'}. Runs of one kind (seeds) share a label: LABEL=PATH."
        )
    if analysis.needs_model and (traces := [s.path for s in subjects if s.is_trace]):
        raise UsageError(
            f"`{analysis.name}` runs the model, and {traces[0]} is a trace. Give the model folder."
        )
