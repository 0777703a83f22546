"""Texts timed alone under several policies in turn, and what may be said of such times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.timing import SYSTEM, Interval, Seconds, TimeSource, alternate
from de3bert.data.tokens import TextInput
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace, curve
from de3bert.exits.family import Family
from de3bert.runtime.classifier import Classifier
from de3lab.statistics import RESAMPLES, percentile_interval, row_draws

__all__ = [
    "FULL_DEPTH",
    "TimedPolicy",
    "efficiency",
    "matched_thresholds",
    "time_policies",
]

FULL_DEPTH = "full"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TimedPolicy:
    """One policy on all texts.

    Attributes:
        layers: where each text left, (texts,).
        seconds: each text alone, tokenising included, (texts, rounds).
    """

    name: str
    layers: NDArray[np.int64]
    seconds: Seconds

    @property
    def typical(self) -> Floats:
        """The median round of each text, (texts,): a disturbance of one round does not count."""
        return np.median(self.seconds, axis=1)


def time_policies(
    classifier: Classifier,
    texts: Sequence[TextInput],
    policies: Mapping[str, Policy],
    *,
    rounds: int,
    seed: int,
    clock: TimeSource = SYSTEM,
) -> list[TimedPolicy]:
    """Times all policies in turn on each text, after a pass that warms up and gives the layers."""
    if rounds < 1:
        raise UsageError(f"At least one round must be timed, got {rounds} (--rounds).")

    def job(policy: Policy) -> Callable[[int], object]:
        return lambda item: classifier.predict([texts[item]], policy=policy)

    layers = {
        name: [classifier.predict([text], policy=policy)[0].exit_layer for text in texts]
        for name, policy in policies.items()
    }
    jobs = {name: job(policy) for name, policy in policies.items()}
    pools = dict.fromkeys(jobs, "one")  # all run on the threads of one model
    spent = alternate(jobs, len(texts), rounds, pools=pools, seed=seed, clock=clock)
    return [TimedPolicy(name, np.array(layers[name]), spent[name]) for name in policies]


def matched_thresholds(trace: Trace, family: Family, ratios: Sequence[float]) -> list[float]:
    """The thresholds that come nearest to `ratios` times fewer layers on a trace, each once.

    Labels are not needed: the final head's answers stand for them, and no score is read.
    """
    points = curve(replace(trace, labels=trace.predictions[:, -1]), family)
    nearest = (np.abs(points.layers_mean - trace.depth / ratio).argmin() for ratio in ratios)
    return list(dict.fromkeys(float(points.thresholds[index]) for index in nearest))


def efficiency(
    full: TimedPolicy, timed: Sequence[TimedPolicy], layer_ratio: float, seed: int
) -> dict[str, Any] | None:
    """How much less time `layer_ratio` times fewer layers take, and how near that is to as much.

    Time is interpolated in layers between the two nearest thresholds. It is compared with the
    threshold that runs most layers, as the paper does, and with full depth where no exit is tested.
    The intervals are those of other texts (resampled with all their times). None where the
    thresholds do not reach that far.
    """
    layers = np.stack([each.layers for each in timed], axis=1).astype(np.float64)
    seconds = np.stack([each.typical for each in timed], axis=1)  # (texts, thresholds)
    plain = full.typical

    def ratios(rows: NDArray[np.int64]) -> tuple[float, float]:
        spent = seconds[rows].sum(0)
        most, wanted = _seconds_at(layers[rows].sum(0), spent, layer_ratio)
        return most / wanted, float(plain[rows].sum()) / wanted

    found = ratios(np.arange(len(layers)))
    if not np.isfinite(found[0]):
        return None
    draws = row_draws(len(layers), RESAMPLES, seed)
    drawn = np.array([ratios(rows) for some in draws for rows in some])  # (resamples, 2)
    tested, untested = (
        Interval(value, *percentile_interval(each)).to_json()
        for value, each in zip(found, drawn.T, strict=True)
    )
    return {
        "layer_ratio": layer_ratio,
        "time_ratio": tested,
        "percent_of_ideal": 100 * found[0] / layer_ratio,
        "time_ratio_untested": untested,
        "percent_of_ideal_untested": 100 * found[1] / layer_ratio,
    }


def _seconds_at(layers: Floats, seconds: Floats, layer_ratio: float) -> tuple[float, float]:
    """Seconds at most layers, and at `layer_ratio` times fewer; NaN where that is out of reach."""
    order = np.argsort(layers, kind="stable")
    wanted = layers[order[-1]] / layer_ratio
    if wanted < layers[order[0]]:
        return float("nan"), float("nan")
    return float(seconds[order[-1]]), float(np.interp(wanted, layers[order], seconds[order]))
