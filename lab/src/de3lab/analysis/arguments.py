"""What a user may choose in several analyses: layers, layer speed-ups, one lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from de3bert.errors import UsageError
from de3bert.exits.trace import Trace
from de3lab.analysis.subject import Subject

__all__ = [
    "LEAST_ROWS",
    "SPEEDS",
    "check_alike",
    "chosen_layers",
    "chosen_speeds",
    "enough_rows",
    "internal_layers",
    "one_lambda",
]

SPEEDS = (1.5, 2.0, 2.5, 3.0, 4.0)
LEAST_ROWS = 10  # with fewer, an interval says nothing
ROUNDING = 1e-9  # two layer ratios nearer than this are the same


def internal_layers(trace: Trace) -> list[int]:
    """The layers at which something is decided: all exits but the last."""
    return list(trace.exit_layers[:-1])


def chosen_layers(
    subjects: Sequence[Subject], asked: Sequence[int] | None, default: Sequence[int]
) -> list[int]:
    """The layers asked for, each once and rising; without any, those of the default that exist."""
    common = set.intersection(*(set(internal_layers(subject.trace)) for subject in subjects))
    there = ", ".join(str(layer) for layer in sorted(common)) or "none"
    if asked is None:
        if found := sorted(common & set(default)):
            return found
        usual = ", ".join(str(layer) for layer in default)
        raise UsageError(
            f"{subjects[0].path} has no exit before the last one at the usual layers ({usual}). "
            f"Choose others with --layer; there are: {there}."
        )
    for layer in asked:
        if layer not in common:
            raise UsageError(
                f"{subjects[0].path} has no exit before the last one at layer {layer}. "
                f"There are: {there}."
            )
    return sorted(set(asked))


def chosen_speeds(subjects: Sequence[Subject], asked: Sequence[float] | None) -> list[float]:
    """The layer speed-ups asked for, rising; without any, those of `SPEEDS` within reach."""
    low = max(trace.base / trace.depth for trace in (subject.trace for subject in subjects))
    high = min(trace.base / trace.exit_layers[0] for trace in (s.trace for s in subjects))
    within = f"The exits of {subjects[0].path} allow {low:.4g} to {high:.4g}."
    reached = [
        speed for speed in asked or SPEEDS if low - ROUNDING <= float(speed) <= high + ROUNDING
    ]
    if asked is None and not reached:
        usual = ", ".join(f"{speed:g}" for speed in SPEEDS)
        raise UsageError(f"No usual layer speed-up ({usual}) is within reach. {within}")
    for speed in asked or ():
        if speed not in reached:
            raise UsageError(f"A layer speed-up of {speed:g} is out of reach. {within}")
    return sorted({float(speed) for speed in reached})


def one_lambda(name: str, settings: Mapping[str, Any], subject: Subject) -> float:
    """The one lambda of EDR that an analysis holds fixed: the model's own unless one is given."""
    given = list(settings["lambdas"] or [subject.own_lambda])
    if len(given) != 1:
        raise UsageError(
            f"`{name}` holds lambda fixed, so it takes one --lambda, got {len(given)}: "
            f"{', '.join(f'{weight:g}' for weight in given) or 'none'}."
        )
    return float(given[0])


def enough_rows(name: str, subject: Subject) -> None:
    """Refuses a sample that is too small for an interval."""
    rows = subject.trace.rows
    if rows < LEAST_ROWS:
        raise UsageError(
            f"`{name}` needs at least {LEAST_ROWS} rows, {subject.path} has {rows}. Give more data."
        )


def check_alike(name: str, subjects: Sequence[Subject]) -> None:
    """Refuses runs of one kind that differ in their exits or in the rows they were asked about."""
    first = subjects[0].trace
    for subject in subjects[1:]:
        trace = subject.trace
        if trace.exit_layers != first.exit_layers:
            raise UsageError(
                f"`{name}` averages over runs with the same exits: {subjects[0].path} has them at "
                f"{first.exit_layers}, {subject.path} at {trace.exit_layers}."
            )
        if trace.rows != first.rows:
            raise UsageError(
                f"`{name}` averages over runs on the same rows: {subjects[0].path} has "
                f"{first.rows}, {subject.path} has {trace.rows}."
            )
