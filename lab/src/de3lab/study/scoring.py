"""What a method scores at given layer speed-ups, with its family chosen on calibration rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from de3bert.errors import De3Error
from de3bert.exits.calibrate import LAMBDA_GRID, PAPER_LAMBDA_GRID, families_of, measure
from de3bert.exits.choose import choose, tie_break
from de3bert.exits.family import Family
from de3bert.exits.metrics import score
from de3bert.exits.points import Target
from de3bert.exits.policy import Policy
from de3bert.exits.temperature import fit_temperatures
from de3bert.exits.trace import Trace
from de3bert.methods import METHODS, Method
from de3lab.documents import MethodScores
from de3lab.study.lines import AREA, ScoreLine, lines_of, speed_grid, speed_key

__all__ = ["exit_scores", "score_method", "tries_lambda"]

Lines = Mapping[str, ScoreLine]
MEASURED = ("score", "score_interval", "layer_speedup", "layer_speedup_interval", "layers_mean")


def score_method(
    name: str,
    calibration: Trace,
    tests: Mapping[str, Trace],
    metrics: Sequence[str],
    speeds: Sequence[float],
    *,
    paper_grid: bool = False,
) -> MethodScores:
    """All numbers of one method on one run.

    At every speed the family (lambda, count) with the best calibration score there is taken, and
    the score is that family's on the test rows, linear in mean layers between its points. Where
    one of the two curves does not reach, there is no score.

    Args:
        paper_grid: chooses lambda among the paper's weights, which lack 0.
    """
    method = METHODS[name]
    document: dict[str, Any] = {"method": name}
    if method.finish == "temperatures":
        found = fit_temperatures(calibration)
        calibration = calibration.tempered(found)
        tests = {test: trace.tempered(found) for test, trace in tests.items()}
        document["temperatures"] = [round(float(value), 6) for value in found]
    families = _families(method, calibration, paper_grid)
    tuned = lines_of(calibration, families, metrics)
    document["choices"] = {speed_key(speed): _chosen(tuned, speed) for speed in speeds}
    document["tests"] = {
        test: _on_test(tuned, trace, lines_of(trace, families, metrics), speeds)
        for test, trace in tests.items()
    }
    return MethodScores.model_validate(document)


def exit_scores(trace: Trace, metrics: Sequence[str]) -> dict[str, float]:
    """Layer -> the score when everybody leaves there."""
    labels, answers = trace.known_labels, trace.predictions
    return {
        str(layer): float(
            np.mean([score(metric, labels, answers[:, i], trace.classes) for metric in metrics])
        )
        for i, layer in enumerate(trace.exit_layers)
    }


def tries_lambda(name: str) -> bool:
    """Whether a method chooses lambda among the weights that all such methods share."""
    method = METHODS[name]
    return method.lambdas is None and "edr" in method.families


def _families(method: Method, trace: Trace, paper_grid: bool) -> list[Family]:
    found: list[Family] = []
    lambdas = method.lambdas or LAMBDA_GRID
    if paper_grid:
        lambdas = PAPER_LAMBDA_GRID
    for text in method.families:
        family = Family.parse(text)
        found += [family] if family.kind == "oracle" else families_of(trace, text, lambdas)
    return found


def _best(tuned: Lines, speed: float) -> str | None:
    """The family with the best calibration score at a speed."""
    reach = [text for text, line in tuned.items() if line.reaches(speed)]
    return max(reach, key=lambda text: (tuned[text].at(speed), *_preferred(text)), default=None)


def _preferred(family: str) -> tuple[float, float]:
    """Among equals, as `calibrate` has it."""
    return tie_break(Family.parse(family).signal)


def _chosen(tuned: Lines, speed: float) -> dict[str, Any] | None:
    family = _best(tuned, speed)
    if family is None:
        return None
    found = {"family": family, "calibration_score": tuned[family].at(speed)}
    policy = _policy(tuned, speed)
    return {**found, "policy": None if policy is None else str(policy)}


def _on_test(tuned: Lines, trace: Trace, lines: Lines, speeds: Sequence[float]) -> dict[str, Any]:
    metrics = list(next(iter(lines.values())).each)
    first = next(iter(lines.values()))
    point = first if first.is_point and len(lines) == 1 else None
    return {
        "rows": trace.rows,
        "at": {speed_key(speed): _seen(tuned, lines, speed) for speed in speeds},
        "area": _area(tuned, lines),
        "point": point and {**(point.seen(point.reach[0]) or {}), "layer_speedup": point.reach[0]},
        "curve": None if point else _curve(tuned, lines, speed_grid(speeds)),
        "calibrated": {
            speed_key(speed): _measured(trace, _policy(tuned, speed), metrics) for speed in speeds
        },
        "exit_scores": exit_scores(trace, metrics),
        "exit_accuracy": exit_scores(trace, ["accuracy"]),
    }


def _seen(tuned: Lines, lines: Lines, speed: float) -> dict[str, Any] | None:
    family = _best(tuned, speed)
    found = None if family is None else lines[family].seen(speed)
    return None if found is None else {**found, "family": family}


def _curve(tuned: Lines, lines: Lines, grid: Sequence[float]) -> dict[str, list[float]]:
    """The scores at every speed of the grid that can be reached, chosen as in the table."""
    found = [(speed, _seen(tuned, lines, speed)) for speed in grid]
    kept = [(speed, seen["score"]) for speed, seen in found if seen is not None]
    return {"layer_speedup": [s for s, _ in kept], "score": [round(v, 6) for _, v in kept]}


def _area(tuned: Lines, lines: Lines) -> dict[str, Any] | None:
    """The mean score over `AREA` or the part within reach, of the family with the best such mean.

    The widest range counts first: a family is not better for leaving out the speeds it cannot do.
    """
    spans = {text: line.span() for text, line in tuned.items()}
    wide = {text: span for text, span in spans.items() if span[0] < span[1]}
    if not wide:
        return None
    best = max(
        wide,
        key=lambda text: (
            round(wide[text][1] - wide[text][0], 9),
            tuned[text].mean.area(*wide[text]),
            *_preferred(text),
        ),
    )
    low, high = lines[best].span()
    if low >= high:
        return None
    found = {"score": lines[best].mean.area(low, high), "low": low, "high": high, "family": best}
    return {**found, "whole": (low, high) == AREA}


def _policy(tuned: Lines, speed: float) -> Policy | None:
    """The policy that calibration rows choose for at least this speed; None for single points."""
    curves = [line.mean for line in tuned.values() if not line.is_point]
    try:
        return choose(curves, Target("layers", speed), 0.0).policy if curves else None
    except De3Error:  # out of reach
        return None


def _measured(trace: Trace, policy: Policy | None, metrics: Sequence[str]) -> dict[str, Any] | None:
    """What that policy really gives on test rows: another score, and another speed."""
    if policy is None:
        return None
    each = {metric: measure(trace, policy, metric) for metric in metrics}
    first = each[metrics[0]]
    return {
        "policy": str(policy),
        **{name: first[name] for name in MEASURED},
        "score": float(np.mean([found["score"] for found in each.values()])),
        "each": {metric: found["score"] for metric, found in each.items()},
        "interval_of": metrics[0],
    }
