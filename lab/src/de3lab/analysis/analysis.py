"""What an analysis is: numbers measured on subjects, and a table and a figure of those numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from de3bert.errors import UsageError
from de3bert.registry import Registry
from de3lab.analysis.subject import Subject, grouped
from de3lab.tabular import Grid

__all__ = ["ANALYSES", "Analysis", "check_subjects", "resolve"]

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
        seeds: whether a label may have several runs; otherwise each has one.
        needs_model: whether a trace is not enough.
        needs_rows: whether a model must be given rows to be asked about.
        worth_drawing: numbers -> whether there is enough for a figure: one or two points of a line
            are read faster in the table.
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
    seeds: bool = True
    needs_model: bool = False
    needs_rows: bool = True
    worth_drawing: Callable[[Numbers], bool] = lambda numbers: True


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
    """Refuses too few, too many, the same one twice, or traces where a model is needed."""
    kinds = grouped(subjects)
    least, most = analysis.labels
    if len(kinds) < least or (most is not None and len(kinds) > most):
        raise UsageError(
            f"`{analysis.name}` takes {_wanted(least, most)}, got {len(kinds)}: "
            f"{', '.join(kinds) or 'none'}. Runs of one kind (seeds) share a label: LABEL=PATH."
        )
    for label, runs in kinds.items():
        _check_runs(analysis, label, runs)
    if analysis.needs_model and (traces := [s.path for s in subjects if s.is_trace]):
        raise UsageError(
            f"`{analysis.name}` runs the model, and {traces[0]} is a trace. Give the model folder."
        )


def _wanted(least: int, most: int | None) -> str:
    if least == most:
        return f"{least} kind{'s' if least > 1 else ''} of models"
    return f"{least} or more kinds of models" if most is None else f"{least} to {most} kinds"


def _check_runs(analysis: Analysis, label: str, runs: Sequence[Subject]) -> None:
    """A run given twice would count as two seeds."""
    if len(runs) > 1 and not analysis.seeds:
        raise UsageError(
            f"`{analysis.name}` looks at one run of {label}, got {len(runs)}: "
            f"{', '.join(run.path for run in runs)}. Give one of them."
        )
    places = [Path(run.path).resolve() for run in runs]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UsageError(
                f"{runs[number].path} is given twice as {label}. Every seed must be a separate run."
            )
