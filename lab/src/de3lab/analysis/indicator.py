"""Entropy against EDR on the same checkpoint: what the distance ratio adds to the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.exits.family import Family
from de3bert.exits.signals.parse import Signal
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import check_alike, chosen_speeds, enough_rows
from de3lab.analysis.comparison import Compared, compare
from de3lab.analysis.comparison_tables import difference_table, draw_comparison, score_table
from de3lab.analysis.subject import Subject
from de3lab.statistics import RESAMPLES
from de3lab.tabular import Grid

__all__ = ["edr_label", "measure_indicator"]

ENTROPY, RATIO = "entropy", "distance ratio"


def measure_indicator(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Entropy, EDR and the distance ratio alone on the same models, at equal layer speed-ups.

    Lambda is the model's own unless the settings have one or several.
    """
    traces = [subject.with_distances for subject in subjects]
    check_alike("indicator", subjects)
    enough_rows("indicator", subjects[0])
    weights = settings["lambdas"] or [subjects[0].own_lambda]
    weights = sorted({float(weight) for weight in weights})
    speeds = chosen_speeds(subjects, settings["speeds"])
    fused = {edr_label(weight): Signal("edr", (("lambda", weight),)) for weight in weights}
    signals = {**fused, ENTROPY: Signal("entropy"), RATIO: Signal("distance_ratio")}
    contenders = [Compared(name, traces, Family.of(one)) for name, one in signals.items()]
    pairs = [(name, ENTROPY) for name in (*fused, RATIO)]
    return {
        "label": subjects[0].label,
        "lambdas": weights,
        **compare(contenders, pairs, ENTROPY, speeds, settings),
    }


def edr_label(weight: float) -> str:
    return f"EDR (λ = {weight:g})"


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    note = f"All on the same checkpoint ({numbers['label']}); only the exit rule differs."
    return [
        score_table(numbers, f"{numbers['metric']} by indicator", "indicator", note),
        difference_table(numbers, "Gain over entropy", _growth(numbers)),
    ]


def _growth(numbers: Mapping[str, Any]) -> str:
    """How the gain of each EDR changes from the lowest speed to the highest."""
    said = []
    for pair in numbers["differences"]:
        seen = pair["growth"]
        if seen is not None and pair["ours"] != RATIO:
            low, high = seen["over_rows"]
            said.append(
                f"From {seen['from']:g}x to {seen['to']:g}x the gain of {pair['ours']} changes by "
                f"{seen['mean']:+.4f} ({low:+.4f} to {high:+.4f} over rows)."
            )
    return " ".join(said)


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    draw_comparison(path, numbers, title=f"Exit indicators on the same model ({numbers['label']})")


ANALYSES.add(
    "indicator",
    Analysis(
        name="indicator",
        title="Entropy against EDR on the same checkpoint",
        summary="what the distance ratio adds to the exit decision",
        paper="Fig. 4",
        measure=measure_indicator,
        tables=_tables,
        draw=_draw,
        settings={
            "lambdas": None,
            "speeds": None,
            "metric": "accuracy",
            "resamples": RESAMPLES,
            "seed": 0,
        },
    ),
)
