"""Layers, time and operations over thresholds: what a saved layer is worth in time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from de3bert.data.sampling import draw_rows
from de3bert.data.tokens import TokenRow
from de3bert.errors import UsageError
from de3bert.exits import Policy
from de3bert.exits.family import Family
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.manifest import is_bundle
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.counting import Operations, counted
from de3lab.analysis.speed_tables import speed_tables
from de3lab.analysis.speed_timing import (
    FULL_DEPTH,
    TimedPolicy,
    efficiency,
    matched_thresholds,
    time_policies,
)
from de3lab.analysis.subject import Subject
from de3lab.figures.speed import draw_speed
from de3lab.statistics import pearson

__all__ = ["PAPER", "PAPER_CORRELATIONS", "measure_speed"]

# The paper's table on the development set of SST-2: threshold, layers, seconds, 10^12 operations.
PAPER = (
    (0.000, 10464, 17.07, 19.0), (0.001, 10159, 16.90, 18.4), (0.007, 7118, 15.24, 12.9),
    (0.010, 6155, 13.66, 11.1), (0.070, 4491, 12.64, 8.1), (0.140, 3751, 12.19, 6.8),
    (0.210, 3332, 11.46, 6.1), (0.290, 3024, 11.46, 5.5), (0.430, 2649, 11.94, 4.8),
    (0.570, 2346, 10.28, 4.3), (0.710, 2110, 11.77, 3.8), (0.790, 2032, 10.16, 3.7),
    (0.860, 1934, 9.70, 3.5), (0.930, 1829, 9.70, 3.3), (0.980, 1284, 9.23, 2.3),
    (1.000, 872, 10.87, 1.6),
)  # fmt: skip
PAPER_RATIOS = tuple(PAPER[0][1] / row[1] for row in PAPER)  # of layers
PAPER_CORRELATIONS = {"flops": 0.99, "seconds": 0.96}
PAPER_ROWS, PAPER_FASTER = 872, 3332  # texts, and the layers of the point that is compared
FEWEST = 4  # thresholds: with fewer a correlation has no interval


def measure_speed(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Each text alone under every threshold in turn, several rounds; operations are counted.

    Thresholds mean another thing for every model: by default they are those that save as many
    layers on these texts as each of the paper's saved on its own.
    """
    (subject,) = subjects
    classifier = subject.classifier
    table = draw_rows(subject.rows, settings["rows"], settings["seed"])
    texts = table.inputs()
    tokens = classifier.encode(texts).rows
    family = _family(classifier, settings["family"])
    taus = settings["tau"] or matched_thresholds(classifier.trace(texts), family, PAPER_RATIOS)
    policies = _policies(classifier, family, taus)
    load = os.getloadavg()[0]  # before the run, whose own work is no load of others
    timed = time_policies(
        classifier, texts, policies, rounds=settings["rounds"], seed=settings["seed"]
    )
    _check_differ(timed)
    operations, counter = counted(subject, tokens)
    thresholds = [
        {"tau": tau, **_described(each, tokens, operations, classifier.info.base_depth)}
        for tau, each in zip(taus, timed[1:], strict=True)
    ]
    return {
        "label": subject.label,
        "family": str(family),
        "matched": settings["tau"] is None,
        "rows": len(texts),
        "tokens_mean": float(np.mean([len(row["input_ids"]) for row in tokens])),
        "rounds": settings["rounds"],
        "runtime": "onnx" if is_bundle(subject.path) else "torch",
        "load": load,
        "cores": len(os.sched_getaffinity(0)),
        "counted_by": counter,
        "full": _described(timed[0], tokens, operations, classifier.info.base_depth),
        "thresholds": thresholds,
        "correlations": {
            name: pearson([t["layers"] for t in thresholds], [t[name] for t in thresholds])
            for name in ("flops", "seconds")
        },
        "efficiency": efficiency(timed[0], timed[1:], PAPER[0][1] / PAPER_FASTER, settings["seed"]),
        "paper": _paper(),
    }


def _family(classifier: Classifier, asked: str | None) -> Family:
    """The family asked for, or that of the model's own signal."""
    own = "edr" if classifier.has_prototypes else "entropy"
    own = "certainty" if classifier.has_router else own
    family = Family.parse(asked or own)
    if family.kind != "threshold":
        raise UsageError(
            f"`speed` goes over thresholds, and `{family}` has none. Give a signal, such as "
            "`entropy` or `edr(lambda=1.0)` (--family)."
        )
    return family


def _policies(
    classifier: Classifier, family: Family, thresholds: Sequence[float]
) -> dict[str, Policy]:
    """Full depth without any test, then one policy per threshold."""
    if len(set(thresholds)) < FEWEST:
        raise UsageError(
            f"`speed` needs at least {FEWEST} different thresholds for a correlation, got "
            f"{len(set(thresholds))} (--tau, repeat it)."
        )
    wanted = [Policy.parse("full"), *(family.policy(tau) for tau in thresholds)]
    names = [FULL_DEPTH, *(f"{number}" for number in range(len(thresholds)))]
    return {
        name: classifier.policy(policy=policy) for name, policy in zip(names, wanted, strict=True)
    }


def _check_differ(timed: Sequence[TimedPolicy]) -> None:
    totals = {int(each.layers.sum()) for each in timed[1:]}
    if len(totals) < 3:
        raise UsageError(
            f"The thresholds give only {len(totals)} different numbers of layers on these rows, so "
            "there is nothing to correlate. Give others with --tau, or more --rows."
        )


def _described(
    timed: TimedPolicy, tokens: Sequence[TokenRow], operations: Mapping[int, Operations], base: int
) -> dict[str, Any]:
    """Totals over all texts: layers, seconds (the median round of each), operations."""
    tested = timed.name != FULL_DEPTH
    spent = [
        operations[len(row["input_ids"])].until(int(layer), tested=tested)
        for row, layer in zip(tokens, timed.layers, strict=True)
    ]
    layers = int(timed.layers.sum())
    return {
        "layers": layers,
        "layer_speedup": base * len(tokens) / layers,
        "seconds": float(timed.typical.sum()),
        "flops": float(np.sum(spent)),
    }


def _paper() -> dict[str, Any]:
    rows = [
        dict(zip(("tau", "layers", "seconds", "tera_flops"), each, strict=True)) for each in PAPER
    ]
    full = rows[0]
    faster = next(row for row in rows if row["layers"] == PAPER_FASTER)
    layers, seconds = (full[name] / faster[name] for name in ("layers", "seconds"))
    return {
        "rows": PAPER_ROWS,
        "thresholds": rows,
        "correlations": PAPER_CORRELATIONS,
        "efficiency": {
            "layer_ratio": layers,
            "time_ratio": seconds,
            "percent_of_ideal": 100 * seconds / layers,
        },
    }


ANALYSES.add(
    "speed",
    Analysis(
        name="speed",
        title="Executed layers, measured time and operations",
        summary="what saved layers are worth in measured time and in operations",
        paper="Table VI",
        measure=measure_speed,
        tables=speed_tables,
        draw=draw_speed,
        settings={
            "family": None,
            "tau": None,
            "rows": 200,
            "rounds": 3,
            "seed": 42,
        },
        seeds=False,
        needs_model=True,
    ),
)
