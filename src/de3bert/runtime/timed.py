"""Measured against predicted: real latencies of some policies along a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from de3bert.data.tokens import TextInput
from de3bert.errors import UsageError
from de3bert.exits.curve import Curve
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.latency import measure_latency

__all__ = ["TimedPoint", "time_curve"]


@dataclass(frozen=True)
class TimedPoint:
    """One policy of a curve, run for real: mean milliseconds per text at batch 1."""

    policy: str
    score: float
    layer_speedup: float
    predicted_ms: float | None
    measured_ms: float
    measured_p50: float
    measured_p95: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def time_curve(
    classifier: Classifier, texts: Sequence[TextInput], curve: Curve, *, count: int = 6
) -> list[TimedPoint]:
    """Runs `count` policies, evenly spread in mean layers, in turn on each text."""
    if not texts:
        raise UsageError("There are no texts to measure on.")
    wanted = np.linspace(curve.layers_mean[0], curve.layers_mean[-1], count)
    found = sorted({int(np.abs(curve.layers_mean - layers).argmin()) for layers in wanted})
    policies = {str(curve.policy(index)): curve.policy(index) for index in found}
    spent = measure_latency(classifier, texts, policies)
    predicted = curve.milliseconds
    return [
        TimedPoint(
            policy=name,
            score=float(curve.score[index]),
            layer_speedup=float(curve.layer_speedup[index]),
            predicted_ms=None if predicted is None else float(predicted[index]),
            measured_ms=spent[name].mean,
            measured_p50=spent[name].p50,
            measured_p95=spent[name].p95,
        )
        for name, index in zip(policies, found, strict=True)
    ]
