"""Do entropy and distance ratio say the same? Their Spearman correlation, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.signals.parse import Signal
from de3bert.exits.sweep import signal_matrix
from de3bert.exits.trace import Trace
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import check_alike, chosen_layers, enough_rows, internal_layers
from de3lab.analysis.formatting import with_interval
from de3lab.analysis.subject import Subject, grouped
from de3lab.figures.over_values import ValueLine, draw_over_values
from de3lab.statistics import described, difference_interval, spearman, spearman_interval
from de3lab.tabular import Grid

__all__ = ["measure_homogeneity"]

Floats = NDArray[np.float64]
NAME = "homogeneity"
LAYERS = (2,)


def measure_homogeneity(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Spearman's rho of entropy and distance ratio at every layer, for every kind of model.

    Labels are not needed. An interval is over rows: runs of one kind see the same rows, so more
    of them do not make it narrower.
    """
    for subject in subjects:
        subject.check_distances()
        enough_rows(NAME, subject)
    kinds = grouped(subjects)
    for same in kinds.values():
        check_alike(NAME, same)
    layers = chosen_layers(subjects, settings["layers"], LAYERS)
    found = [_kind(label, same) for label, same in kinds.items()]
    return {
        "rows": subjects[0].trace.rows,
        "layers": layers,
        "kinds": found,
        "differences": [_less(found[0], other, k) for other in found[1:] for k in layers],
    }


def _kind(label: str, subjects: Sequence[Subject]) -> dict[str, Any]:
    traces = [subject.trace for subject in subjects]
    return {
        "label": label,
        "method": subjects[0].method,
        "runs": len(traces),
        "layers": [
            {"layer": layer, **_layer(traces, number)}
            for number, layer in enumerate(internal_layers(traces[0]))
        ],
    }


def _layer(traces: Sequence[Trace], number: int) -> dict[str, Any]:
    """One exit over the runs of a kind; None, with a reason, where a signal is constant."""
    values = []
    for trace in traces:
        entropy = _column(trace, "entropy", number)
        rho = spearman(entropy, _column(trace, "distance_ratio", number))
        if rho is None:
            constant = "entropy" if np.ptp(entropy) == 0 else "distance ratio"
            nothing = dict.fromkeys(("mean", "sd", "low", "high"))
            reason = f"the {constant} is the same for all rows"
            return {**nothing, "n": len(traces), "values": [], "reason": reason}
        values.append(rho)
    seen = described(values)
    low, high = spearman_interval(seen["mean"], traces[0].rows)
    return {**seen, "low": low, "high": high, "reason": None}


def _column(trace: Trace, signal: str, number: int) -> Floats:
    return signal_matrix(trace, Signal(signal))[:, number]


def _less(first: Mapping[str, Any], other: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """How much higher the correlation of `other` is than that of the first kind, at one layer."""
    ours, theirs = _at(first, layer), _at(other, layer)
    found = {"layer": layer, "of": other["label"], "from": first["label"]}
    if ours["mean"] is None or theirs["mean"] is None:
        return {**found, "mean": None, "low": None, "high": None}
    low, high = difference_interval(theirs, ours)
    return {**found, "mean": theirs["mean"] - ours["mean"], "low": low, "high": high}


def _at(kind: Mapping[str, Any], layer: int) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(each for each in kind["layers"] if each["layer"] == layer)
    return found


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    heads = tuple(f"layer {layer}" for layer in numbers["layers"])
    rows = [
        (kind["label"], kind["runs"], *(with_interval(_at(kind, k)) for k in numbers["layers"]))
        for kind in numbers["kinds"]
    ]
    for name in dict.fromkeys(each["of"] for each in numbers["differences"]):
        seen = [each for each in numbers["differences"] if each["of"] == name]
        title = f"{name} less {seen[0]['from']}"
        rows.append((title, None, *(with_interval(each, "+") for each in seen)))
    note = (
        f"n = {numbers['rows']} rows; in brackets 95 % over rows, for differences as if the models "
        f"had seen different ones.{_reasons(numbers)}"
    )
    title = "Spearman correlation of entropy and distance ratio"
    return [Grid(title, ("model", "runs", *heads), tuple(rows), note), _every_layer(numbers)]


def _every_layer(numbers: Mapping[str, Any]) -> Grid:
    layers = sorted({each["layer"] for kind in numbers["kinds"] for each in kind["layers"]})
    rows = tuple(
        (
            str(layer),
            *(
                next((with_interval(e) for e in kind["layers"] if e["layer"] == layer), None)
                for kind in numbers["kinds"]
            ),
        )
        for layer in layers
    )
    labels = tuple(kind["label"] for kind in numbers["kinds"])
    return Grid("The same at every layer", ("layer", *labels), rows)


def _reasons(numbers: Mapping[str, Any]) -> str:
    return "".join(
        f" {kind['label']}, layer {each['layer']}: {each['reason']}."
        for kind in numbers["kinds"]
        for each in kind["layers"]
        if each["reason"]
    )


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    layers = sorted({each["layer"] for kind in numbers["kinds"] for each in kind["layers"]})
    draw_over_values(
        path,
        [str(layer) for layer in layers],
        [_line(kind, layers) for kind in numbers["kinds"]],
        x_label="layer (bars: 95 % over rows)",
        y_label=f"Spearman's rho (n = {numbers['rows']})",
        title="Correlation of entropy and distance ratio",
        zero=True,
        methods=True,
    )


def _line(kind: Mapping[str, Any], layers: Sequence[int]) -> ValueLine:
    known = {each["layer"]: each for each in kind["layers"]}
    y, low, high = (
        [known[layer][key] if layer in known else None for layer in layers]
        for key in ("mean", "low", "high")
    )
    count = f" ({kind['runs']} runs)" if kind["runs"] > 1 else ""
    return ValueLine(kind["label"] + count, y, low, high)


ANALYSES.add(
    NAME,
    Analysis(
        name=NAME,
        title="Correlation of entropy and distance ratio",
        summary="whether entropy and distance ratio say the same, with and without PN",
        paper="Table XI",
        measure=measure_homogeneity,
        tables=_tables,
        draw=_draw,
        settings={"layers": None},
        labels=(1, None),
    ),
)
