"""Operating points: a named policy together with what was asked for and what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from de3bert.errors import De3Error, UsageError
from de3bert.exits.policy import Policy

__all__ = ["OperatingPoint", "Target"]

Kind = Literal["layers", "drop", "accuracy", "full"]
ACCEPTED = (
    "`layers=2.0` (twice as few layers), `drop=0.01` or `drop=1%` (at most 0.01 below the full "
    "model), `accuracy=0.9` (at least 0.9), `full` (no early exit)"
)
RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "layers": ("at least 1", lambda value: value >= 1),
    "drop": ("from 0 to 1", lambda value: 0 <= value <= 1),
    "accuracy": ("above 0 and at most 1", lambda value: 0 < value <= 1),
}


@dataclass(frozen=True)
class Target:
    """What an operating point must give.

    Example:
        >>> Target.parse("drop=1%")
        Target(kind='drop', value=0.01)
    """

    kind: Kind
    value: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Target:
        line = text.strip()
        if line == "full":
            return cls("full")
        kind, equals, value = (part.strip() for part in line.partition("="))
        if kind not in RANGES or not equals:
            raise UsageError(f'Cannot read the target "{text}". Accepted: {ACCEPTED}.')
        number = _number(value, percent=kind != "layers")
        words, fits = RANGES[kind]
        if not (math.isfinite(number) and fits(number)):
            raise UsageError(f'{kind} must be {words}, got "{value}". Accepted: {ACCEPTED}.')
        return cls(kind, number)  # type: ignore[arg-type]  # RANGES has just the kinds

    def __str__(self) -> str:
        return self.kind if self.kind == "full" else f"{self.kind}={self.value!r}"


@dataclass(frozen=True)
class OperatingPoint:
    """A policy under a name, with what it was measured to give on calibration data.

    Attributes:
        name: what users ask for, such as `balanced`.
        policy: when to leave.
        target: what was asked for, as text.
        measured: rows, metric, score, score_interval, full_score, layers_mean, layer_speedup,
            exit_histogram (layer as text -> rows), data, date. Plain JSON values.
    """

    name: str
    policy: Policy
    target: str
    measured: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "policy": self.policy.to_json(),
            "target": self.target,
            "measured": dict(self.measured),
        }

    @classmethod
    def from_json(cls, document: object) -> OperatingPoint:
        """Reads what `to_json` wrote; De3Error names the part that is missing or wrong."""
        if not isinstance(document, Mapping):
            raise De3Error(f"An operating point is a JSON object, got {document!r}.")
        for key, kind in (("name", str), ("policy", str), ("target", str), ("measured", Mapping)):
            if not isinstance(document.get(key), kind):
                raise De3Error(
                    f'The operating point has no sound "{key}": got {document.get(key)!r}. '
                    "Calibrate again to write a new one."
                )
        try:
            policy = Policy.from_json(document["policy"])
        except UsageError as error:
            raise De3Error(f"The operating point {document['name']!r}: {error}") from error
        return cls(document["name"], policy, document["target"], dict(document["measured"]))


def _number(text: str, percent: bool) -> float:
    try:
        if percent and text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text)
    except ValueError:
        return math.nan
