"""How much the weight of the regulariser matters: score over alpha at several layer speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.errors import UsageError
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import check_alike, chosen_speeds, one_lambda
from de3lab.analysis.formatting import with_spread
from de3lab.analysis.sensitivity import draw_sensitivity, scores_at
from de3lab.analysis.subject import Subject
from de3lab.statistics import described, pooled_sd
from de3lab.tabular import Grid

__all__ = ["LIMIT", "alpha_of", "measure_alpha"]

LIMIT = 0.01  # the paper: what alpha changes is "always less than 1%"
ALPHA = "alpha"
FEWEST = 3  # values that make a line worth looking at


def measure_alpha(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Score of models trained with different alpha, at one lambda and several layer speed-ups.

    Lambda is the first model's own unless the settings have one.
    """
    weight = one_lambda(ALPHA, settings, subjects[0])
    traces = [subject.with_distances for subject in subjects]
    found = _by_alpha(subjects)
    check_alike(ALPHA, subjects)
    speeds = chosen_speeds(subjects, settings["speeds"])
    metric = settings["metric"]
    scores = {
        alpha: np.concatenate([scores_at(s.trace, [weight], speeds, metric) for s in runs])
        for alpha, runs in found.items()
    }
    by_speed = [
        _at_speed(speed, {alpha: seen[:, k].tolist() for alpha, seen in scores.items()})
        for k, speed in enumerate(speeds)
    ]
    return {
        "rows": traces[0].rows,
        "metric": metric,
        "lambda": weight,
        "alphas": list(scores),
        "runs": [len(runs) for runs in found.values()],
        "speeds": speeds,
        "by_speed": by_speed,
        "limit": LIMIT,
        "below_limit": all(each["below_limit"] for each in by_speed),
    }


def alpha_of(subject: Subject) -> float:
    """The alpha a model was trained with: as it says itself, else as its label says."""
    named = _number(subject.label)
    stored = _number(subject.options.get(ALPHA))
    known = named if stored is None else stored
    if known is None:
        raise UsageError(
            f"{subject.path} ({subject.method}) does not say which alpha it was trained with. "
            f"Give it as the label: 0.01={subject.path}."
        )
    if stored is not None and named is not None and not math.isclose(stored, named):
        raise UsageError(
            f"{subject.path} was trained with alpha {stored:g}, and its label says {named:g}. "
            "Leave the label out."
        )
    return known


def _number(text: Any) -> float | None:
    """What an alpha can be: finite and not below 0; None for anything else."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _by_alpha(subjects: Sequence[Subject]) -> dict[float, list[Subject]]:
    """Alpha, rising -> the runs with it; at least two are needed."""
    found: dict[float, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(alpha_of(subject), []).append(subject)
    if len(found) < 2:
        raise UsageError(
            f"`alpha` compares models trained with different alpha; all {len(subjects)} given here "
            f"have alpha {next(iter(found)):g}."
        )
    return dict(sorted(found.items()))


def _at_speed(speed: float, scores: Mapping[float, Sequence[float]]) -> dict[str, Any]:
    """What alpha does at one layer speed-up; `scores`: alpha -> that of each run."""
    seen = [{ALPHA: alpha, **described(values)} for alpha, values in scores.items()]
    means = [each["mean"] for each in seen]
    spread = max(means) - min(means)
    return {
        "speed": speed,
        "scores": seen,
        "best_alpha": seen[int(np.argmax(means))][ALPHA],
        "range": spread,
        "below_limit": spread < LIMIT,
        "run_sd": pooled_sd(list(scores.values())),
    }


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    alphas = tuple(f"alpha {alpha:g}" for alpha in numbers["alphas"])
    rows = tuple(
        (
            f"{each['speed']:g}x",
            *(with_spread(score) for score in each["scores"]),
            f"{100 * each['range']:.2f} %",
            None if each["run_sd"] is None else f"{100 * each['run_sd']:.2f} %",
            each["below_limit"],
        )
        for each in numbers["by_speed"]
    )
    limit = f"{100 * numbers['limit']:g} %"
    columns = ("layer speed-up", *alphas, "range", "sd of runs", f"below {limit}")
    note = (
        f"Policy edr(lambda={numbers['lambda']:g}), n = {numbers['rows']} rows, {_runs(numbers)}. "
        "Range: the highest mean less the lowest; sd of runs: between runs of one alpha. The paper "
        f"says that the range is always below {limit}."
    )
    return [Grid(f"{numbers['metric']} over alpha", columns, rows, note)]


def _runs(numbers: Mapping[str, Any]) -> str:
    least, most = min(numbers["runs"]), max(numbers["runs"])
    if most == 1:
        return "1 run per alpha"
    return f"{least if least == most else f'{least} to {most}'} runs per alpha (mean ± sd)"


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    draw_sensitivity(
        path,
        numbers,
        ALPHA,
        x_label=f"alpha, weight of the regulariser (λ = {numbers['lambda']:g})",
        title=_runs(numbers),
    )


ANALYSES.add(
    ALPHA,
    Analysis(
        name=ALPHA,
        title="Score over alpha at several layer speed-ups",
        summary="how much the weight of the regulariser matters",
        paper="Fig. 8",
        measure=measure_alpha,
        tables=_tables,
        draw=_draw,
        settings={"lambdas": None, "speeds": None, "metric": "accuracy"},
        labels=(1, None),
        worth_drawing=lambda numbers: len(numbers["alphas"]) >= FEWEST,
    ),
)
