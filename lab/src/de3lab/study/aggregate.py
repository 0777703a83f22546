"""From finished runs to the numbers of the report: means, averages, ranks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from de3lab.statistics import SIGNIFICANCE, holm, paired_test, ranks, summary
from de3lab.study.lines import speed_key
from de3lab.study.results import Results

__all__ = ["aggregate"]

MIN_TASKS = 3  # for a test over tasks


def aggregate(results: Results) -> dict[str, Any]:
    """The parts of `study.json` that come out of scores, as JSON."""
    speeds, spec = results.spec.speeds, results.spec
    by_speed = {speed_key(speed): speed for speed in speeds}
    return {
        "scores": {key: _scores(results, speed) for key, speed in by_speed.items()},
        "averages": {key: _averages(results, speed) for key, speed in by_speed.items()},
        "ranks": {key: _ranks(results, speed) for key, speed in by_speed.items()},
        "tests": {key: _tests(results, speed) for key, speed in by_speed.items()},
        "significant_below": SIGNIFICANCE,
        "areas": _per_task(results, _area),
        "points": _per_task(results, _point),
        "curves": _per_task(results, _curve),
        "exits": _per_task(results, _exits),
        "base_depth": {record.task: record.base_depth for record in results.records},
        "calibrated": {
            key: _per_task(results, lambda r, t, m, key=key: _calibrated(r, t, m, key))
            for key in by_speed
        },
        "complete_tasks": results.complete,
        "chosen": spec.chosen,
    }


def _per_task(results: Results, of: Any) -> dict[str, dict[str, Any]]:
    """Task -> method -> something, where there is something."""
    return {
        task: {
            method: found
            for method in results.spec.methods
            if results.each(task, method) and (found := of(results, task, method)) is not None
        }
        for task in results.tasks
    }


def _scores(results: Results, speed: float) -> dict[str, Any]:
    def score(_: Results, task: str, method: str) -> dict[str, Any] | None:
        values = results.values(task, method, speed)
        if not values:
            return None
        seen = [found.at[speed_key(speed)] for _, found in results.each(task, method)]
        each = {
            metric: float(np.mean([one.each[metric] for one in seen if one]))
            for metric in next(one for one in seen if one).each
        }
        return {**summary([*values.values()]), "values": _named(values), "each": each}

    return _per_task(results, score)


def _named(values: dict[int, float]) -> dict[str, float]:
    return {str(seed): value for seed, value in values.items()}


def _averages(results: Results, speed: float) -> dict[str, Any]:
    """The mean over the tasks that all methods have finished, of methods that reach the speed."""
    means: dict[str, float] = {}
    for method in results.spec.methods:
        scores = [results.values(task, method, speed) for task in results.complete]
        if scores and all(scores):
            means[method] = float(np.mean([np.mean([*each.values()]) for each in scores]))
    return {"tasks": results.complete, "methods": means}


def _ranks(results: Results, speed: float) -> dict[str, Any]:
    """Mean ranks: within each task and seed, then over seeds, then over tasks.

    Only methods that reach the speed everywhere are ranked, on tasks that all have finished.
    """
    rivals = [
        method
        for method in results.ranked
        if results.complete
        and all(
            {*results.seeds(task, results.ranked)} <= {*results.values(task, method, speed)}
            for task in results.complete
        )
    ]
    by_task = []
    for task in results.complete:
        scores = {method: results.values(task, method, speed) for method in rivals}
        blocks = [
            ranks({method: scores[method][seed] for method in rivals})
            for seed in results.seeds(task, results.ranked)
        ]
        by_task.append({m: float(np.mean([block[m] for block in blocks])) for m in rivals})
    means = {m: float(np.mean([task[m] for task in by_task])) for m in rivals if by_task}
    return {"tasks": results.complete, "methods": means}


def _tests(results: Results, speed: float) -> dict[str, Any]:
    """The chosen method against each other: per task over seeds, and over the means of tasks."""
    ours = results.spec.chosen
    found = {}
    for other in results.ranked:
        if other == ours or ours not in results.ranked:
            continue
        pairs = {task: results.pairs(task, ours, other, speed) for task in results.tasks}
        tests = {task: paired_test(*both, unit="seeds") for task, both in pairs.items() if both[0]}
        adjusted = holm({task: test["p"] for task, test in tests.items()})
        for task, test in tests.items():
            test["p_holm"] = adjusted[task]
        if tests:
            means = [(np.mean(a), np.mean(b)) for a, b in pairs.values() if a]
            found[other] = {"tasks": tests, "over_tasks": _over_tasks(means)}
    return found


def _over_tasks(means: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    test = paired_test([float(a) for a, _ in means], [float(b) for _, b in means], unit="tasks")
    if test["n"] >= MIN_TASKS:
        return test
    reason = f"a test over tasks needs at least {MIN_TASKS}, there are {test['n']}"
    return {**test, "p": None, "t": None, "dz": None, "reason": reason}


def _area(results: Results, task: str, method: str) -> dict[str, Any] | None:
    seen = [found.area for _, found in results.each(task, method)]
    areas = [area for area in seen if area is not None]
    if len(areas) < len(seen):
        return None
    low, high = max(area.low for area in areas), min(area.high for area in areas)
    whole = all(area.whole for area in areas)
    return {**summary([area.score for area in areas]), "low": low, "high": high, "whole": whole}


def _point(results: Results, task: str, method: str) -> dict[str, Any] | None:
    seen = [found.point for _, found in results.each(task, method)]
    points = [point for point in seen if point is not None]
    if len(points) < len(seen):
        return None
    speed = float(np.mean([point.layer_speedup for point in points]))
    return {**summary([point.score for point in points]), "layer_speedup": speed}


def _curve(results: Results, task: str, method: str) -> dict[str, Any] | None:
    """The mean over seeds at every speed that all of them reach."""
    seen = [found.curve for _, found in results.each(task, method)]
    curves = [curve for curve in seen if curve is not None]
    if len(curves) < len(seen):
        return None
    tables = [dict(zip(c.layer_speedup, c.score, strict=True)) for c in curves]
    speeds = [speed for speed in tables[0] if all(speed in table for table in tables)]
    scores = [round(float(np.mean([table[s] for table in tables])), 6) for s in speeds]
    return {"layer_speedup": speeds, "score": scores, "n": len(curves)}


def _exits(results: Results, task: str, method: str) -> dict[str, float]:
    """Layer -> mean score of everybody leaving there."""
    seen = [found.exit_scores for _, found in results.each(task, method)]
    return {layer: float(np.mean([one[layer] for one in seen])) for layer in seen[0]}


def _calibrated(results: Results, task: str, method: str, key: str) -> dict[str, Any] | None:
    """Mean score and speed-up of the policies that calibration rows chose."""
    seen = [found.calibrated.get(key) for _, found in results.each(task, method)]
    known = [one for one in seen if one is not None]
    if not known:
        return None
    speed = float(np.mean([one.layer_speedup for one in known]))
    return {**summary([one.score for one in known]), "layer_speedup": speed}
