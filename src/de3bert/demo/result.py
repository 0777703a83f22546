"""What the demo found, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from de3bert.exits import OperatingPoint
from de3bert.files import write_json
from de3bert.machine import machine, versions
from de3bert.runtime.latency import LatencySummary
from de3bert.tasks.explanations import Explanation

__all__ = ["DemoResult", "PointResult"]


@dataclass(frozen=True)
class PointResult:
    """One operating point, chosen on calibration rows, measured once on test rows."""

    point: str
    policy: str
    weight: float | None  # lambda
    threshold: float | None
    accuracy: float
    interval: tuple[float, float]
    layers_mean: float
    layer_speedup: float
    latency_p50: float
    latency_p95: float
    latency_ratio: float  # full depth's median / this point's
    exit_histogram: dict[str, int]
    promise: str | None = None  # what is promised of other texts

    @classmethod
    def of(
        cls,
        point: OperatingPoint,
        seen: dict[str, Any],
        latency: LatencySummary,
        full: LatencySummary,
    ) -> PointResult:
        low, high = seen["score_interval"]
        signal = point.policy.signal
        return cls(
            point=point.name,
            policy=str(point.policy),
            weight=dict(signal.params).get("lambda") if signal else None,
            threshold=getattr(point.policy.rule, "threshold", None),
            accuracy=seen["score"],
            interval=(low, high),
            layers_mean=seen["layers_mean"],
            layer_speedup=seen["layer_speedup"],
            latency_p50=latency.p50,
            latency_p95=latency.p95,
            latency_ratio=full.p50 / latency.p50,
            exit_histogram=seen["exit_histogram"],
            promise=(point.measured.get("guarantee") or {}).get("promise"),
        )


@dataclass(frozen=True)
class DemoResult:
    """The demo's table, examples and where its files are."""

    folder: str
    points: list[PointResult]
    examples: tuple[Explanation, ...]
    exit_accuracy: dict[str, float]  # layer -> accuracy, test rows
    rows: dict[str, int]
    seed: int

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "command": "de3 demo",
            "versions": versions(),
            "machine": machine(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            **asdict(self),
        }

    def save(self, path: Path) -> None:
        write_json(path, self.to_json())
