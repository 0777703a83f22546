"""Batch-1 latency of several policies, measured alternately so that noise hits all alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from de3bert.exits import Policy
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.timing import Job, in_turn

__all__ = ["LatencySummary", "measure_latency"]


@dataclass(frozen=True)
class LatencySummary:
    """Milliseconds per text, tokenising included."""

    p50: float
    p95: float
    mean: float


def measure_latency(
    classifier: Classifier[Any],
    texts: Sequence[Any],
    policies: Mapping[str, Policy],
    *,
    warm_up: int = 10,
) -> dict[str, LatencySummary]:
    """Runs each text alone under every policy in turn before the next text."""
    jobs = {name: _alone(classifier, texts, policy) for name, policy in policies.items()}
    in_turn(jobs, min(warm_up, len(texts)))
    times = {name: seen[:, 0] * 1e3 for name, seen in in_turn(jobs, len(texts)).items()}
    return {
        name: LatencySummary(*(float(v) for v in (*np.percentile(seen, [50, 95]), np.mean(seen))))
        for name, seen in times.items()
    }


def _alone(classifier: Classifier[Any], texts: Sequence[Any], policy: Policy) -> Job:
    return lambda item: classifier.predict([texts[item]], policy=policy)
