"""From times and answers to the document that a benchmark leaves behind, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.answers import Labels, Reference, is_exact
from de3bert.bench.measure import Measured
from de3bert.bench.ours import Ours
from de3bert.bench.timing import Interval, bootstrap, over_rounds
from de3bert.exits.layer_speedup import exit_histogram, layer_speedup, layers_mean

__all__ = ["contender_rows", "latency_table", "ratio_table", "token_lengths"]

# One graph of the same precision: the best that the exporter can make, and beside it the ordinary
# export, which is slower and so flatters.
FUSED = {"fp32": "ort-fused", "int8": "ort-fused-int8"}
PLAIN = {"fp32": "ort", "int8": "ort-int8"}
QUANTILES = {"p25": 25, "p50": 50, "p75": 75, "p95": 95}


def contender_rows(
    measured: Sequence[Measured],
    baselines: Sequence[str],
    reference: Reference,
    labels: Labels | None,
) -> list[dict[str, Any]]:
    """One row per contender.

    Args:
        baselines: names of the contenders that the others are set in relation to.
        reference: the labels that count as the model's own.
        labels: the right classes, where they are known.
    """
    known = {each.contender.name: each for each in measured}
    bases = [known[name] for name in baselines]
    rows = []
    for each in measured:
        row = _own_row(each, reference, labels)
        for name, bases_of in (("efficiency", FUSED), ("efficiency_plain", PLAIN)):
            base = known.get(bases_of[each.contender.precision])
            row[name] = _efficiency(each, row["layer_speedup"], base)
        row["against"] = {
            other.contender.name: _against(each, other)
            for other in [*bases, *_elsewhere(each, measured)]
            if other is not each
        }
        rows.append(row)
    return rows


def _elsewhere(each: Measured, measured: Sequence[Measured]) -> list[Measured]:
    """The same bundle at the same point, run by a back end that stands before this one."""
    own = each.contender
    if not isinstance(own, Ours):
        return []
    return [
        other
        for other in takewhile(lambda other: other is not each, measured)
        if isinstance(other.contender, Ours)
        and other.contender.pool != own.pool
        and (other.contender.precision, other.contender.point) == (own.precision, own.point)
    ]


def _own_row(each: Measured, reference: Reference, labels: Labels | None) -> dict[str, Any]:
    """What a contender shows without the others."""
    contender, answers = each.contender, each.answers
    said = [reference.task.said(answer) for answer in answers]
    found = reference.task.answered(answers, reference.label_names)
    row: dict[str, Any] = {
        "name": contender.name,
        "ours": False,
        "precision": contender.precision,
        "latency_ms": _summary(each.seconds * 1e3),
        "tokenising_ms": _summary(each.tokenising * 1e3),
        "batch_size": each.batch_size,
        "texts_per_second": over_rounds(len(answers) / each.list_seconds).to_json(),
        "same_answers": _share(said, reference.labels),
        "answers_ok": reference.same(each) if is_exact(each) else None,
        "accuracy": None if labels is None else _share(said, labels),
        "layers_mean": layers_mean(found.exit_layers, found.weights),
        "layer_speedup": layer_speedup(found.exit_layers, answers[0].layers, found.weights),
    }
    if isinstance(contender, Ours):
        exits = exit_histogram(found.exit_layers, contender.classifier.backend.exit_layers)
        row |= {"ours": True, "backend": contender.pool, "point": contender.point}
        row |= {"policy": str(contender.policy), "graphs": contender.graphs}
        row["exit_histogram"] = {str(layer): count for layer, count in exits.items()}
    return row


def _share(said: Labels, right: Labels) -> float:
    """Of texts, or of all words."""
    same = [
        mine == label
        for row, labels in zip(said, right, strict=True)
        for mine, label in zip(row, labels, strict=True)
    ]
    return float(np.mean(same))


def _summary(values: NDArray[np.float64]) -> dict[str, float]:
    p50, p95 = np.percentile(values, [50, 95])
    return {"p50": float(p50), "p95": float(p95), "mean": float(values.mean())}


def _efficiency(each: Measured, speedup: float, base: Measured | None) -> float | None:
    """Share of the layers saved that arrives as time: (one graph's time / ours) / speed-up."""
    if base is None or not isinstance(each.contender, Ours):
        return None
    return float(base.seconds.mean() / each.seconds.mean() / speedup)


def _against(each: Measured, base: Measured) -> dict[str, dict[str, Any]]:
    """How many times faster than a baseline, each with its 95 % interval."""
    ratios = {
        "mean": bootstrap(base.seconds, each.seconds, np.mean),
        "median": bootstrap(base.seconds, each.seconds, np.median),
        "throughput": over_rounds(base.list_seconds / each.list_seconds),
    }
    return {name: ratio.to_json() for name, ratio in ratios.items()}


def token_lengths(lengths: Sequence[int]) -> dict[str, float]:
    """How long the texts are, in tokens."""
    found = np.percentile(lengths, list(QUANTILES.values()))
    return {
        "min": int(min(lengths)),
        **{name: float(value) for name, value in zip(QUANTILES, found, strict=True)},
        "max": int(max(lengths)),
        "mean": float(np.mean(lengths)),
    }


def latency_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Columns and cells: times and answers of every contender."""
    columns = ["contender", "one text by", "p50 ms", "p95 ms", "mean ms", "texts/s", "batch",
               "mean layers", "layer speed-up", "same answers", "accuracy"]  # fmt: skip
    cells = [
        [
            row["name"],
            row.get("graphs"),
            *(row["latency_ms"][name] for name in ("p50", "p95", "mean")),
            row["texts_per_second"]["value"],
            row["batch_size"],
            row["layers_mean"],
            row["layer_speedup"],
            row["same_answers"],
            row["accuracy"],
        ]
        for row in rows
    ]
    return columns, cells


def ratio_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Columns and cells: how many times faster ours is than each baseline.

    The efficiency is that to the fused graph; the one to the plain export has a column of its own.
    """
    columns = ["contender", "against", "mean time", "median time", "throughput", "efficiency",
               "to the plain export"]  # fmt: skip
    cells = [
        [
            row["name"],
            name,
            *(str(Interval(**ratios[kind])) for kind in ("mean", "median", "throughput")),
            row["efficiency"] if name == FUSED[row["precision"]] else None,
            row["efficiency_plain"] if name == PLAIN[row["precision"]] else None,
        ]
        for row in rows
        if row["ours"]
        for name, ratios in row["against"].items()
    ]
    return columns, cells
