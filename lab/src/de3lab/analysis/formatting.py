"""Numbers with their spread or interval, as they stand in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["runs", "with_interval", "with_spread"]

ABSENT = "-"


def with_spread(seen: Mapping[str, Any] | None, sign: str = "") -> str:
    """`0.8532 ± 0.0031`, or without the deviation where there is one value; `sign="+"` shows it."""
    if seen is None or seen["mean"] is None:
        return ABSENT
    text = f"{seen['mean']:{sign}.4f}"
    return text if seen["sd"] is None else f"{text} ± {seen['sd']:.4f}"


def with_interval(seen: Mapping[str, Any], sign: str = "") -> str:
    """`0.145 [0.079, 0.209]`, or without the interval where there is none."""
    if seen["mean"] is None:
        return ABSENT
    text = f"{seen['mean']:{sign}.3f}"
    if seen["low"] is None:
        return text
    return f"{text} [{seen['low']:{sign}.3f}, {seen['high']:{sign}.3f}]"


def runs(seeds: int) -> str:
    """`1 run` or `3 runs (mean ± sd)`."""
    return "1 run" if seeds == 1 else f"{seeds} runs (mean ± sd)"
