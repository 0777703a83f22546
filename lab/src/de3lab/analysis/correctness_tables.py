"""The numbers of `correctness` as tables and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from de3lab.analysis.formatting import runs, with_interval, with_spread
from de3lab.figures.correctness import Estimates, draw_correctness
from de3lab.tabular import Grid

__all__ = ["correctness_tables", "draw_correctness_numbers"]

Numbers = Mapping[str, Any]


def correctness_tables(numbers: Numbers) -> list[Grid]:
    """Accuracy at the chosen layers and thresholds, and ROC-AUC at every layer."""
    return [_estimation_table(numbers), _auc_table(numbers)]


def draw_correctness_numbers(path: Path, numbers: Numbers) -> None:
    """Bars at the chosen layers and thresholds above, AUC over the layers below."""
    several = len(numbers["tau"]) > 1
    bars = {
        f"{each['layer']}, τ {each['tau']:g}" if several else str(each["layer"]): Estimates(
            (each["entropy"]["mean"], each["edr"]["mean"]), each["right"]["mean"]
        )
        for each in numbers["estimation"]
    }
    known = [each for each in numbers["auc"] if each["difference"] is not None]
    draw_correctness(
        path,
        bars,
        {each["layer"]: (each["entropy"]["mean"], each["edr"]["mean"]) for each in known},
        names=("entropy", f"EDR (λ = {numbers['lambda']:g})"),
        at="layer and threshold" if several else f"layer (τ = {numbers['tau'][0]:g})",
        note=f"n = {numbers['rows']} rows, {runs(numbers['runs']).partition(' (')[0]}",
    )


def _estimation_table(numbers: Numbers) -> Grid:
    rows = tuple(
        (
            str(each["layer"]),
            f"{each['tau']:g}",
            with_spread(each["right"]),
            f"{100 * each['below']['entropy']:.1f} / {100 * each['below']['edr']:.1f}",
            with_spread(each["entropy"]),
            with_spread(each["edr"]),
            with_interval(each["difference"], "+"),
        )
        for each in numbers["estimation"]
    )
    note = (
        f"{_about(numbers)} The share of rows where a signal below the threshold means a right "
        "answer and one above it a wrong one; to be seen beside the share of right answers, which "
        "always saying `right` reaches. Below: percent of rows with entropy / EDR below the "
        "threshold. In brackets 95 % by resampling rows."
    )
    columns = ("layer", "threshold", "right answers", "below", "entropy", "EDR", "difference")
    return Grid("Accuracy of correctness estimation", columns, rows, note)


def _auc_table(numbers: Numbers) -> Grid:
    rows = tuple(
        (
            str(each["layer"]),
            with_spread(each["right"]),
            with_spread(each["entropy"]),
            with_spread(each["edr"]),
            None if each["difference"] is None else with_interval(each["difference"], "+"),
        )
        for each in numbers["auc"]
    )
    trend = numbers["trend"]
    said = f"no Spearman correlation, {trend.get('reason')}"
    if trend["rho"] is not None:
        said = (
            f"Spearman {trend['rho']:.2f} over {trend['n']} layers, which are of the same models "
            "and no independent samples: there is no test"
        )
    reasons = "".join(f" Layer {e['layer']}: {e['reason']}." for e in numbers["auc"] if e["reason"])
    note = (
        f"{_about(numbers)} ROC-AUC: how often a right answer has a lower signal than a wrong one; "
        f"no threshold is involved. Difference with depth: {said}.{reasons}"
    )
    columns = ("layer", "right answers", "entropy", "EDR", "difference")
    return Grid("ROC-AUC of correctness estimation", columns, rows, note)


def _about(numbers: Numbers) -> str:
    return (
        f"{numbers['label']}, {runs(numbers['runs'])}, n = {numbers['rows']} rows, "
        f"EDR with lambda {numbers['lambda']:g}."
    )
