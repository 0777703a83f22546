"""Documents as stored results have them, written by hand: only what findings read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.tests.documents.made import analysis_result, method, score, study_result, task

from de3lab.documents import StudyResult
from de3lab.paper.stored import Stored

SPEEDS = ("1.5", "2", "3", "4")


class Written(Stored):
    """A results folder that exists in memory alone."""

    def __init__(
        self,
        results: Mapping[str, Mapping[str, Any]] | None = None,
        studies: Mapping[str, Any] | None = None,
        documents: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(Path("nowhere"))
        given = {
            item: {task: analysis_result(numbers) for task, numbers in tasks.items()}
            for item, tasks in (results or {}).items()
        }
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "written_studies", dict(studies or {}))
        object.__setattr__(self, "documents", dict(documents or {}))

    def results(self, item: Any) -> dict[str, Any]:
        return self.given.get(item.name, {})  # type: ignore[attr-defined, no-any-return]

    def study(self, name: str) -> Any:
        return self.written_studies.get(name)  # type: ignore[attr-defined]

    def document(self, name: str) -> Any:
        return self.documents.get(name)  # type: ignore[attr-defined]


def difference(values: Sequence[float], reach: float = 0.01) -> dict[str, Any]:
    """What a comparison stores at one speed."""
    mean = sum(values) / len(values)
    return {"mean": mean, "values": list(values), "over_rows": [mean - reach, mean + reach]}


def comparison(
    pairs: Mapping[tuple[str, str], Mapping[str, Sequence[float]]], reach: float = 0.01
) -> dict[str, Any]:
    """The numbers of `indicator`, `components` or `dar-forms`: (ours, theirs) -> speed -> gains."""
    return {
        "speeds": [float(speed) for speed in next(iter(pairs.values()))],
        "differences": [
            {
                "ours": ours,
                "theirs": theirs,
                "pairs": len(next(iter(at.values()))),
                "at": {speed: difference(values, reach) for speed, values in at.items()},
                "growth": _growth(at, reach),
            }
            for (ours, theirs), at in pairs.items()
        ],
    }


def _growth(at: Mapping[str, Sequence[float]], reach: float) -> dict[str, Any]:
    first, *_, last = at
    grown = [b - a for a, b in zip(at[first], at[last], strict=True)]
    return {"from": float(first), "to": float(last), **difference(grown, reach)}


def study(
    scores: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]],
    withdrawn: Mapping[str, str] | None = None,
) -> StudyResult:
    """`study.json` as findings read it: speed -> task -> method -> a score for each seed.

    Args:
        withdrawn: method -> why its results do not count.
    """
    tasks = dict.fromkeys(name for each in scores.values() for name in each)
    return study_result(
        tasks=[task(name) for name in tasks],
        methods=[
            method(name, ranked=False, withdrawn=why) for name, why in (withdrawn or {}).items()
        ],
        scores={
            speed: {
                name: {
                    each_method: score({str(42 + k): v for k, v in enumerate(values)})
                    for each_method, values in methods.items()
                }
                for name, methods in each.items()
            }
            for speed, each in scores.items()
        },
    )


def shift(
    scores: Mapping[str, Mapping[str, Sequence[float]]], speed: float | None = None
) -> dict[str, Any]:
    """Speed -> rule -> a score for each run; `speed` instead of those, where there is only one."""

    def seen(at: str, values: Sequence[float]) -> dict[str, Any]:
        speeds = {"values": [speed or float(at)] * len(values)}
        return {"score": {"values": list(values)}, "layer_speedup": speeds}

    return {
        "at": {
            at: {rule: seen(at, values) for rule, values in rules.items()}
            for at, rules in scores.items()
        }
    }


def correctness(gains: Mapping[int, Sequence[float]], reach: float = 0.01) -> dict[str, Any]:
    """Layer -> EDR less entropy for each run; the same for both measures."""

    def seen(values: Sequence[float]) -> dict[str, Any]:
        mean = sum(values) / len(values)
        ends = {"low": mean - reach, "high": mean + reach}
        return {"mean": mean, "values": list(values), **ends}

    return {
        "tau": [0.2],
        "layers": list(gains),
        "estimation": [
            {"layer": layer, "tau": 0.2, "difference": seen(values)}
            for layer, values in gains.items()
        ],
        "auc": [{"layer": layer, "difference": seen(values)} for layer, values in gains.items()],
    }


def homogeneity(
    with_networks: Sequence[float], without: Sequence[float], reach: float = 0.05
) -> dict[str, Any]:
    """Correlations at layer 2 for each run."""
    means = [sum(values) / len(values) for values in (with_networks, without)]
    less = means[1] - means[0]
    return {
        "layers": [2],
        "kinds": [
            {"layers": [{"layer": 2, "mean": mean, "values": list(values)}]}
            for mean, values in zip(means, (with_networks, without), strict=True)
        ],
        "differences": [{"layer": 2, "mean": less, "low": less - reach, "high": less + reach}],
    }


def lambda_scores(scores: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Lambda -> the score of each run, at every speed the same; lambdas rise from 0."""
    seen = [{"lambda": float(k), "values": list(values)} for k, values in enumerate(scores)]
    return {"by_speed": [{"speed": speed, "scores": seen} for speed in (1.5, 2.0, 3.0)]}


def lambdas(best: Sequence[Sequence[float]], flat: int = 0) -> dict[str, Any]:
    """The best lambda of each run at 1.5x, 2x, 3x and 4x; at the first few, all are the same."""
    return {
        "speeds": [1.5, 2.0, 3.0, 4.0],
        "by_speed": [
            {
                "speed": speed,
                "best_lambda": runs[0],
                "best_lambda_of_runs": list(runs),
                "shape": "flat" if number < flat else "rise-then-fall",
            }
            for number, (speed, runs) in enumerate(zip((1.5, 2.0, 3.0, 4.0), best, strict=True))
        ],
    }


def alphas(ranges: Mapping[float, float], run_sd: float | None, runs: int) -> dict[str, Any]:
    """Speed -> range of the means over four values of alpha."""
    return {
        "runs": [runs] * 4,
        "by_speed": [
            {"speed": speed, "range": width, "run_sd": run_sd, "scores": [{}] * 4}
            for speed, width in ranges.items()
        ],
    }
