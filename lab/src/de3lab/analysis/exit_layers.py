"""Where rows leave at chosen thresholds: exit-layer distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.errors import UsageError
from de3bert.exits.calibrate import default_family
from de3bert.exits.family import Family
from de3bert.exits.layer_speedup import exit_histogram, layer_speedup, layers_mean
from de3bert.exits.metrics import score
from de3bert.exits.replay import replay
from de3bert.figures.exits import draw_exits
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.subject import Subject
from de3lab.tabular import Grid

__all__ = ["measure_exit_layers"]


def measure_exit_layers(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The share of rows that leave at each layer, at every threshold of the settings."""
    (subject,) = subjects
    trace = subject.labelled
    family = _family(settings["family"] or default_family(trace))
    if not settings["tau"]:
        raise UsageError("`exit-layers` needs at least one threshold (--tau), got none.")
    found = []
    for tau in settings["tau"]:
        answers = replay(trace, family.policy(tau))
        rows = exit_histogram(answers.exit_layers, trace.exit_layers)
        found.append(
            {
                "tau": tau,
                "score": score(
                    settings["metric"], trace.known_labels, answers.labels, trace.classes
                ),
                "layers_mean": layers_mean(answers.exit_layers),
                "layer_speedup": layer_speedup(answers.exit_layers, trace.base),
                "exits": {str(layer): count for layer, count in rows.items()},
            }
        )
    return {
        "family": str(family),
        "metric": settings["metric"],
        "rows": trace.rows,
        "thresholds": found,
    }


def _family(text: str) -> Family:
    """A family whose open number is a threshold."""
    family = Family.parse(text)
    if family.kind != "threshold":
        raise UsageError(
            f"`exit-layers` looks at thresholds of a signal, and `{family}` has none. Use a family "
            "such as `edr(lambda=1.0)`, `entropy` or `entropy x 2`."
        )
    return family


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    layers = list(numbers["thresholds"][0]["exits"])
    rows = tuple(
        (
            f"{each['tau']:g}",
            round(each["score"], 4),
            f"{each['layer_speedup']:.2f}x",
            *(f"{100 * each['exits'][layer] / numbers['rows']:.1f}" for layer in layers),
        )
        for each in numbers["thresholds"]
    )
    columns = ("threshold", numbers["metric"], "layer speed-up", *layers)
    note = f"{numbers['family']}, n = {numbers['rows']}. Under a layer: percent of rows that leave."
    return [Grid("Exit layers", columns, rows, note)]


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    panels = {
        f"τ = {each['tau']:g} ({each['score']:.3f}, {each['layer_speedup']:.2f}x)": {
            int(layer): rows for layer, rows in each["exits"].items()
        }
        for each in numbers["thresholds"]
    }
    draw_exits(path, panels, title=f"Exit layers, {numbers['family']}")


ANALYSES.add(
    "exit-layers",
    Analysis(
        name="exit-layers",
        title="Exit layers at chosen thresholds",
        summary="where rows leave at chosen thresholds",
        paper="Fig. 6",
        measure=measure_exit_layers,
        tables=_tables,
        draw=_draw,
        settings={"family": None, "tau": [0.14, 0.40, 0.65], "metric": "accuracy"},
        seeds=False,
    ),
)
