"""How well entropy and EDR tell whether an early answer is right: at a threshold, and as ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError
from de3bert.exits.signals.parse import Signal
from de3bert.exits.sweep import signal_matrix
from de3bert.exits.trace import Trace
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import (
    check_alike,
    chosen_layers,
    enough_rows,
    internal_layers,
    one_lambda,
)
from de3lab.analysis.auc import Ordered
from de3lab.analysis.correctness_tables import correctness_tables, draw_correctness_numbers
from de3lab.analysis.subject import Subject
from de3lab.statistics import (
    RESAMPLES,
    described,
    percentile_interval,
    rank_trend,
    row_counts,
)

__all__ = ["estimates_right", "measure_correctness"]

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
NAME = "correctness"
LAYERS = (2, 5, 10)
FEWEST = 5  # right answers, and wrong ones, below which resampling says nothing about an AUC


@dataclass(frozen=True, eq=False)
class Run:
    """One run's signals at the internal exits, and whether they are right; all (rows, exits)."""

    entropy: Floats
    edr: Floats
    right: Truths

    @classmethod
    def of(cls, trace: Trace, weight: float) -> Run:
        fused = signal_matrix(trace, Signal("edr", (("lambda", weight),)))
        return cls(signal_matrix(trace, Signal("entropy")), fused, trace.correct[:, :-1])


def measure_correctness(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Accuracy of `[signal < tau] == [answer is right]`, and ROC-AUC at every layer.

    Differences (EDR less entropy) come with a 95 % interval from resampled rows; every draw serves
    both signals and all runs. Lambda is the first model's own unless the settings have one.
    """
    weight = one_lambda(NAME, settings, subjects[0])
    taus = _checked(settings["tau"])
    runs = [Run.of(subject.with_distances, weight) for subject in subjects]
    enough_rows(NAME, subjects[0])
    check_alike(NAME, subjects)
    trace = subjects[0].trace
    there = internal_layers(trace)
    layers = chosen_layers(subjects, settings["layers"], LAYERS)
    seed = int(settings["seed"])
    estimation = [
        {"layer": layer, **_estimation(runs, there.index(layer), tau, seed)}
        for layer in layers
        for tau in taus
    ]
    auc = [{"layer": layer, **_ranked(runs, number, seed)} for number, layer in enumerate(there)]
    return {
        "label": subjects[0].label,
        "runs": len(runs),
        "rows": trace.rows,
        "lambda": weight,
        "tau": taus,
        "layers": layers,
        "resamples": RESAMPLES,
        "estimation": estimation,
        "auc": auc,
        "trend": _trend(auc),
    }


def estimates_right(values: Floats, right: Truths, tau: float) -> Truths:
    """Of which rows "below tau" says correctly whether the answer is right. (rows,)"""
    return np.asarray((values < tau) == right)


def _checked(taus: Sequence[float]) -> list[float]:
    for tau in taus:
        if not 0 <= tau <= 1:
            raise UsageError(f"A threshold on entropy or EDR lies in 0 to 1, got {tau:g}.")
    return sorted({float(tau) for tau in taus})


def _estimation(runs: Sequence[Run], number: int, tau: float, seed: int) -> dict[str, Any]:
    """One exit at one threshold, over the runs."""
    entropy = np.stack(
        [estimates_right(r.entropy[:, number], r.right[:, number], tau) for r in runs]
    )
    edr = np.stack([estimates_right(r.edr[:, number], r.right[:, number], tau) for r in runs])
    gained = edr.astype(np.int64) - entropy  # (runs, rows)
    per_row = gained.mean(axis=0)
    draws = np.concatenate(
        [counts @ per_row for counts in row_counts(len(per_row), RESAMPLES, seed)]
    ) / len(per_row)
    low, high = percentile_interval(draws)
    return {
        "tau": tau,
        "right": described([float(run.right[:, number].mean()) for run in runs]),
        "below": {
            "entropy": float(np.mean([run.entropy[:, number] < tau for run in runs])),
            "edr": float(np.mean([run.edr[:, number] < tau for run in runs])),
        },
        "entropy": described(entropy.mean(axis=1).tolist()),
        "edr": described(edr.mean(axis=1).tolist()),
        "difference": {**described(gained.mean(axis=1).tolist()), "low": low, "high": high},
    }


def _ranked(runs: Sequence[Run], number: int, seed: int) -> dict[str, Any]:
    """ROC-AUC at one exit over the runs; None, with a reason, where a run has no wrong answer."""
    right = [run.right[:, number] for run in runs]
    found: dict[str, Any] = {"right": described([float(each.mean()) for each in right])}
    for each in right:
        if each.all() or not each.any():
            reason = f"all {len(each)} answers are {'right' if each.all() else 'wrong'}: no AUC"
            return {**found, "entropy": None, "edr": None, "difference": None, "reason": reason}
    entropy = [Ordered.of(run.entropy[:, number], run.right[:, number]) for run in runs]
    edr = [Ordered.of(run.edr[:, number], run.right[:, number]) for run in runs]
    gained = [ours.plain - theirs.plain for ours, theirs in zip(edr, entropy, strict=True)]
    interval, doubt = _auc_interval(edr, entropy, seed)
    return {
        **found,
        "entropy": described([each.plain for each in entropy]),
        "edr": described([each.plain for each in edr]),
        "difference": {**described(gained), **interval},
        "reason": doubt,
    }


def _auc_interval(
    edr: Sequence[Ordered], entropy: Sequence[Ordered], seed: int
) -> tuple[dict[str, float | None], str | None]:
    """The interval of the difference in AUC, the mean over runs, or why there is none."""
    rows = len(edr[0].right)
    right = [int(each.right.sum()) for each in edr]
    fewest = min(min(count, rows - count) for count in right)
    if fewest < FEWEST:
        kind = "wrong" if rows - max(right) == fewest else "right"
        reason = f"no interval: only {fewest} answers are {kind}, {FEWEST} are needed"
        return {"low": None, "high": None}, reason
    draws = np.concatenate(
        [
            np.mean(
                [a.auc(counts) - b.auc(counts) for a, b in zip(edr, entropy, strict=True)], axis=0
            )
            for counts in row_counts(rows, RESAMPLES, seed)
        ]
    )
    low, high = percentile_interval(draws)  # a draw without a wrong answer has no AUC
    return {"low": low, "high": high}, None


def _trend(auc: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether the gain in AUC falls with depth, as the paper says of shallow layers."""
    known = [each for each in auc if each["difference"] is not None]
    gains = [each["difference"]["mean"] for each in known]
    return rank_trend([each["layer"] for each in known], gains, "falls")


ANALYSES.add(
    NAME,
    Analysis(
        name=NAME,
        title="Accuracy of correctness estimation",
        summary="how well entropy and EDR tell whether an early answer is right",
        paper="Fig. 9",
        measure=measure_correctness,
        tables=correctness_tables,
        draw=draw_correctness_numbers,
        settings={"layers": None, "tau": [0.2], "lambdas": None, "seed": 0},
    ),
)
