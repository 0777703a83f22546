"""From finished runs to the numbers of the report: means, averages, ranks and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from de3bert.exits.layer_speedup import beyond
from de3bert.methods import METHODS
from de3lab.statistics import (
    SIGNIFICANCE,
    holm,
    paired_test,
    ranks,
    student_interval,
    summary,
)
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
        "exit_sd": _per_task(results, _exit_sd),
        "base_depth": {record.task: record.base_depth for record in results.records},
        "calibrated": {
            key: _per_task(results, lambda r, t, m, speed=speed: _calibrated(r, t, m, speed))
            for key, speed in by_speed.items()
        },
        "steps": _per_task(results, _steps),
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
        each = _mean_metrics([one.each for one in seen if one])
        return {**summary([*values.values()]), "values": _named(values), "each": each}

    return _per_task(results, score)


def _mean_metrics(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {metric: float(np.mean([one[metric] for one in each])) for metric in each[0]}


def _named(values: dict[int, float]) -> dict[str, float]:
    return {str(seed): value for seed, value in values.items()}


def _averages(results: Results, speed: float) -> dict[str, Any]:
    """The mean over the tasks that all methods have finished, of methods that reach the speed.

    Only seeds that all methods share count, so that no mean of three stands beside one of one.
    """
    shared = {task: results.seeds(task, results.ranked) for task in results.complete}
    means: dict[str, float] = {}
    for method in results.ranked:
        scores = {task: results.values(task, method, speed) for task in shared}
        if shared and all({*seeds} <= {*scores[task]} for task, seeds in shared.items()):
            of_tasks = [np.mean([scores[task][s] for s in seeds]) for task, seeds in shared.items()]
            means[method] = float(np.mean(of_tasks))
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
    """The chosen method against each other: per task over seeds, and over the means of tasks.

    Two-tailed, since a mark may go either way. The tests of one speed are one family: Holm's
    correction is over all methods and tasks, and over all methods for the means of tasks.
    """
    ours = results.spec.chosen
    found: dict[str, Any] = {}
    for other in results.ranked:
        if other == ours or ours not in results.ranked:
            continue
        every = {task: results.pairs(task, ours, other, speed) for task in results.tasks}
        pairs = {task: both for task, both in every.items() if both[0]}
        if pairs:
            tests = {task: paired_test(*both, "seeds", "two") for task, both in pairs.items()}
            found[other] = {"tasks": tests, "over_tasks": _over_tasks([*pairs.values()])}
    _correct([(other, task) for other in found for task in found[other]["tasks"]], found)
    adjusted = holm({other: both["over_tasks"]["p"] for other, both in found.items()})
    for other, p in adjusted.items():
        found[other]["over_tasks"]["p_holm"] = p
    return found


def _correct(places: Sequence[tuple[str, str]], found: Mapping[str, Any]) -> None:
    """Puts Holm's p-value into every test over seeds."""
    tests = {(other, task): found[other]["tasks"][task] for other, task in places}
    for place, p in holm({place: test["p"] for place, test in tests.items()}).items():
        tests[place]["p_holm"] = p


def _over_tasks(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> dict[str, Any]:
    ours, theirs = ([float(np.mean(both[side])) for both in pairs] for side in (0, 1))
    test = paired_test(ours, theirs, "tasks", "two")
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
    each = _mean_metrics([point.each for point in points])
    return {**summary([point.score for point in points]), "layer_speedup": speed, "each": each}


def _curve(results: Results, task: str, method: str) -> dict[str, Any] | None:
    """Mean and deviation over seeds at every speed that all of them reach."""
    seen = [found.curve for _, found in results.each(task, method)]
    curves = [curve for curve in seen if curve is not None]
    if len(curves) < len(seen):
        return None
    tables = [dict(zip(c.layer_speedup, c.score, strict=True)) for c in curves]
    speeds = [speed for speed in tables[0] if all(speed in table for table in tables)]
    seen_at = [[table[speed] for table in tables] for speed in speeds]
    scores = [round(float(np.mean(values)), 6) for values in seen_at]
    spread = [round(float(np.std(values, ddof=1)), 6) for values in seen_at if len(values) > 1]
    return {"layer_speedup": speeds, "score": scores, "n": len(curves), "sd": spread or None}


def _exits(results: Results, task: str, method: str) -> dict[str, float]:
    """Layer -> mean score of everybody leaving there."""
    seen = [found.exit_scores for _, found in results.each(task, method)]
    return {layer: float(np.mean([one[layer] for one in seen])) for layer in seen[0]}


def _exit_sd(results: Results, task: str, method: str) -> dict[str, float] | None:
    seen = [found.exit_scores for _, found in results.each(task, method)]
    if len(seen) < 2:
        return None
    return {layer: float(np.std([one[layer] for one in seen], ddof=1)) for layer in seen[0]}


def _calibrated(results: Results, task: str, method: str, wanted: float) -> dict[str, Any] | None:
    """Mean score and speed-up of the policies that calibration rows chose for a speed.

    The interval of the speed-up is over seeds, or over rows where there is one seed.
    """
    key = speed_key(wanted)
    seen = [found.calibrated.get(key) for _, found in results.each(task, method)]
    known = [one for one in seen if one is not None]
    if not known:
        return None
    speeds = [one.layer_speedup for one in known]
    over, between = "seeds", student_interval(speeds)
    if between is None and known[0].layer_speedup_interval is not None:
        low, high = known[0].layer_speedup_interval
        over, between = "rows", (low, high)
    ends = {} if between is None else {"low": between[0], "high": between[1], "over": over}
    return {
        **summary([one.score for one in known]),
        "layer_speedup": float(np.mean(speeds)),
        "off": beyond(wanted, between),
        **ends,
    }


def _steps(results: Results, task: str, method: str) -> dict[str, Any]:
    """Optimizer steps of the first finished seed.

    Where exits were fitted after a training its steps count; those of a teacher stand apart.
    """
    seed = results.each(task, method)[0][0]
    record = results.records_of[task, method, seed]
    own = record.training_record
    phases = {str(p["name"]): int(p["steps"]) for p in own.phases or () if p.get("steps")}
    found: dict[str, Any] = {"steps": own.steps, "phases": phases}
    above = results.trained.get((task, record.teacher or "", seed))
    if above is None:
        return found
    if METHODS[record.training].base is None:
        return {**found, "teacher": above.training_record.steps}
    steps = own.steps + above.training_record.steps
    return {"steps": steps, "phases": {above.training: above.training_record.steps, **phases}}
