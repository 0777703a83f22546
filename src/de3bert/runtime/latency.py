"""Batch-1 latency of several policies, measured alternately so that noise hits all alike."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from de3bert.exits import Policy
from de3bert.runtime.classifier import Classifier, TextInput

__all__ = ["Latency", "measure_latency"]


@dataclass(frozen=True)
class Latency:
    """Milliseconds per text, tokenising included."""

    p50: float
    p95: float
    mean: float


def measure_latency(
    classifier: Classifier,
    texts: Sequence[TextInput],
    policies: Mapping[str, Policy],
    *,
    warm_up: int = 10,
) -> dict[str, Latency]:
    """Runs each text alone under every policy in turn before the next text."""
    times: dict[str, list[float]] = {name: [] for name in policies}
    for text in texts[:warm_up]:
        for policy in policies.values():
            classifier.predict([text], policy=policy)
    for text in texts:
        for name, policy in policies.items():
            start = time.perf_counter()
            classifier.predict([text], policy=policy)
            times[name].append((time.perf_counter() - start) * 1e3)
    return {
        name: Latency(*(float(v) for v in (*np.percentile(seen, [50, 95]), np.mean(seen))))
        for name, seen in times.items()
    }
