"""How much weight the distance ratio should have: score over lambda at several layer speed-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import check_alike, chosen_speeds
from de3lab.analysis.formatting import runs, with_spread
from de3lab.analysis.sensitivity import SAME, draw_sensitivity, scores_at
from de3lab.analysis.subject import Subject
from de3lab.statistics import described, rank_trend
from de3lab.tabular import Grid

__all__ = ["LAMBDAS", "measure_lambda", "shape_of"]

Floats = NDArray[np.float64]
LAMBDAS = (0.0, 0.25, 0.5, 0.667, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


def measure_lambda(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Score of EDR for every lambda and layer speed-up, over the runs of one kind.

    Lambda 0, which is plain entropy, is always among them: gains are taken from it.
    """
    traces = [subject.with_distances for subject in subjects]
    check_alike("lambda", subjects)
    weights = sorted({0.0, *(float(weight) for weight in settings["lambdas"])})
    speeds = chosen_speeds(subjects, settings["speeds"])
    scores = np.stack([scores_at(each, weights, speeds, settings["metric"]) for each in traces])
    found = [_at_speed(speed, weights, scores[:, :, k]) for k, speed in enumerate(speeds)]
    return {
        "label": subjects[0].label,
        "runs": len(traces),
        "rows": traces[0].rows,
        "metric": settings["metric"],
        "lambdas": weights,
        "speeds": speeds,
        "by_speed": found,
        "trends": {
            "best_lambda": _best_trend(found),
            "gain": rank_trend(speeds, [each["gain"]["mean"] for each in found], "grows"),
        },
    }


def shape_of(scores: Sequence[float]) -> tuple[str, float]:
    """How scores go along a rising setting, and the largest step against that.

    - `rise-then-fall`: the highest is inside, above both ends; `rise`: it is at the end; `fall`:
      at the beginning; `flat`: all are equal.
    - The step against it: how far the scores ever sink on the way up to the highest, or rise on
      the way down. 0 for a clean hill.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.max() - values.min() <= SAME:
        return "flat", 0.0
    top = _first_highest(values)
    up, down = values[: top + 1], values[top:]
    against = max(
        float((np.maximum.accumulate(up) - up).max()),
        float((down - np.minimum.accumulate(down)).max()),
    )
    if top == 0:
        return "fall", against
    return ("rise" if values[-1] >= values[top] - SAME else "rise-then-fall"), against


def _best_trend(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether the best lambda grows with the speed; where lambda changes nothing, none is best."""
    told = [each for each in found if each["shape"] != "flat"]
    best = [each["best_lambda"] for each in told]
    return rank_trend([each["speed"] for each in told], best, "grows")


def _first_highest(values: Floats) -> int:
    """The first of the highest: among equally good lambdas the smallest, nearest to entropy."""
    return int(np.flatnonzero(values >= values.max() - SAME)[0])


def _at_speed(speed: float, weights: Sequence[float], scores: Floats) -> dict[str, Any]:
    """What lambda does at one layer speed-up; `scores`: (runs, weights)."""
    means = scores.mean(axis=0)
    best = _first_highest(means)
    shape, against = shape_of(means.tolist())
    return {
        "speed": speed,
        "scores": [
            {"lambda": weight, **described(scores[:, k].tolist())}
            for k, weight in enumerate(weights)
        ],
        "best_lambda": weights[best],
        "best_lambda_of_runs": [weights[_first_highest(run)] for run in scores],
        "gain": described((scores[:, best] - scores[:, 0]).tolist()),
        "shape": shape,
        "against": against,
    }


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    heads = tuple(f"{speed:g}x" for speed in numbers["speeds"])
    rows = tuple(
        (f"{weight:g}", *(with_spread(each["scores"][k]) for each in numbers["by_speed"]))
        for k, weight in enumerate(numbers["lambdas"])
    )
    note = (
        f"{numbers['label']}, {runs(numbers['runs'])}, n = {numbers['rows']} rows. Columns are "
        "layer speed-ups; lambda 0 is entropy alone."
    )
    return [
        Grid(f"{numbers['metric']} over lambda", ("lambda", *heads), rows, note),
        _best_table(numbers),
    ]


def _best_table(numbers: Mapping[str, Any]) -> Grid:
    rows = tuple(
        (
            f"{each['speed']:g}x",
            f"{each['best_lambda']:g}",
            with_spread(each["gain"], "+"),
            each["shape"],
            f"{each['against']:.4f}",
        )
        for each in numbers["by_speed"]
    )
    columns = ("layer speed-up", "best lambda", "gain over lambda 0", "shape", "step against")
    note = (
        f"Best lambda with the layer speed-up (flat ones left out): "
        f"{_trend(numbers['trends']['best_lambda'])}. Gain with the layer speed-up: "
        f"{_trend(numbers['trends']['gain'])}. Speeds of the same models are no independent "
        "samples, so there is no test over them. The best lambda is chosen on the rows it is "
        "scored on, so a gain is never below 0; of equal ones the smallest is taken. Step against "
        "the shape: how far the score ever sinks on the way up to the best lambda, or rises after "
        "it."
    )
    return Grid("Best lambda at each layer speed-up", columns, rows, note)


def _trend(seen: Mapping[str, Any]) -> str:
    if seen["rho"] is None:
        return f"no Spearman correlation, {seen['reason']}"
    return f"Spearman {seen['rho']:.2f} over {seen['n']} speeds"


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    draw_sensitivity(
        path,
        numbers,
        "lambda",
        x_label="λ, weight of the distance ratio (0: entropy alone)",
        title=f"{numbers['label']}, {runs(numbers['runs'])}",
    )


ANALYSES.add(
    "lambda",
    Analysis(
        name="lambda",
        title="Score over lambda at several layer speed-ups",
        summary="how much weight the distance ratio should have",
        paper="Fig. 7",
        measure=measure_lambda,
        tables=_tables,
        draw=_draw,
        settings={"lambdas": list(LAMBDAS), "speeds": None, "metric": "accuracy"},
    ),
)
