"""The tables of the analysis `speed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from de3lab.tabular import Grid

__all__ = ["speed_tables"]


def speed_tables(numbers: Mapping[str, Any]) -> list[Grid]:
    """What was measured, how it hangs together, and what saved layers are worth in time."""
    return [_measured(numbers), _correlations(numbers), _efficiency(numbers)]


def _measured(numbers: Mapping[str, Any]) -> Grid:
    columns = (
        "threshold", "executed layers", "layer speed-up", "time (s)", "FLOPs (x 10^9)",
        "time, % of most layers", "in the paper, %",
    )  # fmt: skip
    named = [("full depth, no tests", numbers["full"])]
    named += [(f"{each['tau']:.4g}", each) for each in numbers["thresholds"]]
    most = max(numbers["thresholds"], key=lambda each: float(each["layers"]))
    rows = tuple(
        (
            name,
            each["layers"],
            f"{each['layer_speedup']:.2f}x",
            f"{each['seconds']:.3f}",
            f"{each['flops'] / 1e9:.2f}",
            f"{100 * each['seconds'] / most['seconds']:.0f}",
            f"{_paper_share(numbers, each['layers'] / most['layers']):.0f}" if number else None,
        )
        for number, (name, each) in enumerate(named)
    )
    return Grid("Layers, time and operations", columns, rows, _note(numbers))


def _paper_share(numbers: Mapping[str, Any], layers: float) -> float:
    """The paper's time at a share of its layers, as percent of its full time, interpolated."""
    rows = sorted(numbers["paper"]["thresholds"], key=lambda row: float(row["layers"]))
    whole = rows[-1]
    x = [row["layers"] / whole["layers"] for row in rows]
    return float(np.interp(layers, x, [100 * row["seconds"] / whole["seconds"] for row in rows]))


def _note(numbers: Mapping[str, Any]) -> str:
    said = [
        f"{numbers['label']}, {numbers['family']}, n = {numbers['rows']} texts one at a time, "
        f"{numbers['tokens_mean']:.1f} tokens in the mean, by {numbers['runtime']}. Time is the "
        f"sum over texts of the median of {numbers['rounds']} rounds, tokenising included; the "
        "thresholds took turns on each text. FLOPs are the matrix products of executed layers and "
        f"tested exits, those of attention included ({numbers['counted_by']})."
    ]
    if numbers["matched"]:
        said.append("The thresholds are those that save as many layers as each of the paper's.")
    if numbers["load"] > numbers["cores"] / 2:
        said.append(
            f"Other programs kept the machine busy (load {numbers['load']:.1f} on "
            f"{numbers['cores']} cores): the times are noisy."
        )
    return " ".join(said)


def _correlations(numbers: Mapping[str, Any]) -> Grid:
    rows = []
    for key, name in (("flops", "layers and FLOPs"), ("seconds", "layers and time")):
        found = numbers["correlations"][key]
        published = numbers["paper"]["correlations"][key]
        rows.append((name, f"{found['value']:.4f}", f"{published:.2f}"))
    return Grid(
        "Pearson correlations",
        ("between", "here", "paper"),
        tuple(rows),
        f"Over {len(numbers['thresholds'])} thresholds of one model, which are no independent "
        "samples: there is no interval. FLOPs are counted from layers.",
    )


def _efficiency(numbers: Mapping[str, Any]) -> Grid:
    ours, paper = numbers["efficiency"], numbers["paper"]["efficiency"]
    columns = ("", "fewer layers", "less time", "95 % interval", "percent of the ideal")
    rows: list[tuple[Any, ...]] = [("here", None, None, None, None)]
    if ours is not None:
        rows = [
            _our_row("here", ours, "time_ratio_untested", "percent_of_ideal_untested"),
            _our_row(
                "here, against full depth with its tests", ours, "time_ratio", "percent_of_ideal"
            ),
        ]
    rows.append(
        (
            "paper",
            f"{paper['layer_ratio']:.2f}x",
            f"{paper['time_ratio']:.2f}x",
            None,
            f"{paper['percent_of_ideal']:.0f} %",
        )
    )
    note = (
        "Latency ratio at the paper's layer ratio, here interpolated between the two nearest "
        "thresholds, against full depth that tests no exit, the fastest there is without exits; "
        "the paper compares with the threshold that runs most layers. Intervals are over texts. "
        "The ideal is as many times less time as layers."
    )
    if ours is None:
        note += " The thresholds here do not save as many layers."
    return Grid("What saved layers are worth", columns, tuple(rows), note)


def _our_row(name: str, ours: Mapping[str, Any], key: str, percent: str) -> tuple[Any, ...]:
    ratio = ours[key]
    return (
        name,
        f"{ours['layer_ratio']:.2f}x",
        f"{ratio['value']:.2f}x",
        f"{ratio['low']:.2f}x to {ratio['high']:.2f}x",
        f"{ours[percent]:.0f} %",
    )
