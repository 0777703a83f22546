"""Kinds of DE3 models under one exit rule: what its parts give, and what the form of DAR gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from de3bert.exits.family import Family
from de3bert.exits.signals.parse import Signal
from de3bert.methods import METHODS
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import check_alike, chosen_speeds, enough_rows, one_lambda
from de3lab.analysis.comparison import Compared, compare
from de3lab.analysis.comparison_tables import difference_table, draw_comparison, score_table
from de3lab.analysis.subject import Subject, grouped
from de3lab.statistics import RESAMPLES
from de3lab.tabular import Grid

__all__ = ["measure_components", "measure_dar_forms"]

SETTINGS = {
    "lambdas": None,
    "speeds": None,
    "metric": "accuracy",
    "resamples": RESAMPLES,
    "seed": 0,
}


def measure_components(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every kind against every later one, all with EDR and the same lambda.

    Kinds come in the order given: the whole first, then with one part less, and so on.
    """
    return _measure("components", subjects, settings)


def measure_dar_forms(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same for the forms of the regulariser, with the largest difference among them."""
    numbers = _measure("dar-forms", subjects, settings)
    forms = {label: _form(runs[0]) for label, runs in grouped(subjects).items()}
    for line in numbers["lines"]:
        line["form"] = forms[line["label"]]
    found = [
        {"ours": pair["ours"], "theirs": pair["theirs"], "speed": float(key), **seen}
        for pair in numbers["differences"]
        for key, seen in pair["at"].items()
    ]
    largest = max(found, key=lambda each: abs(each["mean"]))
    return {
        **numbers,
        "largest": {name: largest[name] for name in ("ours", "theirs", "speed", "mean")},
        "beyond_noise": sum(each["beyond_noise"] for each in found),
        "compared": len(found),
    }


def _measure(name: str, subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    kinds = grouped(subjects)
    for runs in kinds.values():
        check_alike(name, runs)
        enough_rows(name, runs[0])
    weight = one_lambda(name, settings, subjects[0])
    family = Family.of(Signal("edr", (("lambda", weight),)))
    traces = {label: [run.with_distances for run in runs] for label, runs in kinds.items()}
    speeds = chosen_speeds(subjects, settings["speeds"])
    contenders = [Compared(label, seen, family) for label, seen in traces.items()]
    return {
        "lambda": weight,
        **compare(contenders, combinations(kinds, 2), subjects[0].label, speeds, settings),
    }


def _form(subject: Subject) -> str | None:
    """The form of the regulariser, as far as the model, its trace or its method says it."""
    if "dar" in subject.options:
        return str(subject.options["dar"])
    known = METHODS[subject.method].options if subject.method in METHODS else {}
    return str(known["dar"]) if "dar" in known else None


def _component_tables(numbers: Mapping[str, Any]) -> list[Grid]:
    note = f"All with EDR, lambda = {numbers['lambda']:g}."
    return [
        score_table(numbers, f"{numbers['metric']} with and without the parts", "model", note),
        difference_table(numbers, "Differences between the models"),
    ]


def _form_tables(numbers: Mapping[str, Any]) -> list[Grid]:
    named = {
        **numbers,
        "lines": [
            {**line, "label": f"{line['form'] or 'unknown'} ({line['label']})"}
            for line in numbers["lines"]
        ],
    }
    largest = numbers["largest"]
    note = (
        f"The largest of {numbers['compared']} differences is {largest['mean']:+.4f} "
        f"({largest['ours']} - {largest['theirs']} at {largest['speed']:g}x); "
        f"{numbers['beyond_noise']} of them are beyond noise."
    )
    about = f"All with EDR, lambda = {numbers['lambda']:g}."
    return [
        score_table(named, f"{numbers['metric']} by form of DAR", "form of DAR", about),
        difference_table(numbers, "Differences between the forms", note),
    ]


def _draw_components(path: Path, numbers: Mapping[str, Any]) -> None:
    draw_comparison(path, numbers, title=f"Parts of DE3, all with EDR (λ = {numbers['lambda']:g})")


def _draw_forms(path: Path, numbers: Mapping[str, Any]) -> None:
    draw_comparison(path, numbers, title=f"Forms of DAR, all with EDR (λ = {numbers['lambda']:g})")


ANALYSES.add(
    "components",
    Analysis(
        name="components",
        title="What prototypical networks and DAR give",
        summary="full / w/o PN / w/o PN w/o DAR, all with EDR",
        paper="Fig. 5",
        measure=measure_components,
        tables=_component_tables,
        draw=_draw_components,
        settings=SETTINGS,
        labels=(2, None),
    ),
)
ANALYSES.add(
    "dar-forms",
    Analysis(
        name="dar-forms",
        title="Forms of the distance-aware regulariser",
        summary="center, alienation and combined, all with EDR",
        paper="Table XIII",
        measure=measure_dar_forms,
        tables=_form_tables,
        draw=_draw_forms,
        settings=SETTINGS,
        labels=(2, None),
    ),
)
