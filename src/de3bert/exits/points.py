"""Operating points: a named policy together with what was asked for and what was measured."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from de3bert.errors import De3Error, UsageError
from de3bert.exits.line import one_line, parse_number, shown
from de3bert.exits.policy import Policy

__all__ = ["OperatingPoint", "Target"]

Kind = Literal["layers", "drop", "accuracy", "latency", "speedup", "full"]
ACCEPTED = (
    "`layers=2.0` (twice as few layers), `drop=0.01` or `drop=1%` (at most 0.01 below the full "
    "model), `accuracy=0.9` (at least 0.9), `latency=8ms` (at most 8 predicted milliseconds per "
    "text), `speedup=2.5` (predicted time 2.5 times below that of the full model), `full` (no "
    "early exit)"
)
RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "layers": ("at least 1", lambda value: value >= 1),
    "drop": ("from 0 to 1", lambda value: 0 <= value <= 1),
    "accuracy": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "latency": ("above 0", lambda value: value > 0),
    "speedup": ("at least 1", lambda value: value >= 1),
}
# The unit that may follow the number, and what to divide by then.
UNITS = {"drop": ("%", 100.0), "accuracy": ("%", 100.0), "latency": ("ms", 1.0)}


LARGEST = 10**15  # of anything that was measured


@dataclass(frozen=True)
class Target:
    """What an operating point must give.

    `layers` is a ratio of layers, those of the model compared with (`Trace.base`, for a whole model
    its own) to those executed. `latency` (mean milliseconds per text, one text at a time,
    tokenising included) and `speedup` (mean time of the full model over mean time) are times
    predicted by a cost model of one machine.

    Example:
        >>> Target.parse("drop=1%")
        Target(kind='drop', value=0.01)
    """

    kind: Kind
    value: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Target:
        line = one_line(text, "A target", f"Accepted: {ACCEPTED}.")
        if line == "full":
            return cls("full")
        kind, equals, value = (part.strip() for part in line.partition("="))
        if kind not in RANGES or not equals:
            raise UsageError(f'Cannot read the target "{shown(line)}". Accepted: {ACCEPTED}.')
        number = _number(value, *UNITS.get(kind, ("", 1.0)))
        words, fits = RANGES[kind]
        if not (math.isfinite(number) and fits(number)):
            raise UsageError(f'{kind} must be {words}, got "{shown(value)}". Accepted: {ACCEPTED}.')
        return cls(kind, number)  # type: ignore[arg-type]  # RANGES has just the kinds

    @property
    def is_time(self) -> bool:
        """Whether it takes a cost model to tell if it is met."""
        return self.kind in ("latency", "speedup")

    def __str__(self) -> str:
        if self.kind == "full":
            return self.kind
        return f"{self.kind}={self.value!r}{'ms' if self.kind == 'latency' else ''}"


@dataclass(frozen=True)
class OperatingPoint:
    """A policy under a name, with what it was measured to give on calibration data.

    Attributes:
        name: what users ask for, such as `balanced`.
        policy: when to leave.
        target: what was asked for, as text.
        measured: rows, metric, score, score_interval, full_score, layers_mean, layer_speedup,
            exit_histogram (layer as text -> rows), data, date; with a cost model also
            predicted_ms and predicted_time_speedup; `warnings` where there were some. Plain JSON
            values.
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
            raise De3Error(f"An operating point is a JSON object, got {reprlib.repr(document)}.")
        for key, kind in (("name", str), ("policy", str), ("target", str), ("measured", Mapping)):
            if not isinstance(document.get(key), kind):
                raise De3Error(
                    f'The operating point has no sound "{key}": got '
                    f"{reprlib.repr(document.get(key))}. Calibrate again to write a new one."
                )
        try:
            policy = Policy.from_json(document["policy"])
        except UsageError as error:
            raise De3Error(f"The operating point {shown(document['name'])!r}: {error}") from error
        _check_measured(shown(document["name"]), document["measured"])
        return cls(document["name"], policy, document["target"], dict(document["measured"]))


def _is_number(value: object) -> bool:
    if isinstance(value, int):  # of any size in JSON
        return not isinstance(value, bool) and abs(value) <= LARGEST
    return isinstance(value, float) and math.isfinite(value)


def _is_interval(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


# What is shown of a point, and what each value must be where it is there.
MEASURED: dict[str, Callable[[object], bool]] = {
    "rows": lambda value: type(value) is int,
    "metric": lambda value: isinstance(value, str),
    "score": _is_number,
    "score_interval": _is_interval,
    "full_score": _is_number,
    "layers_mean": _is_number,
    "layer_speedup": _is_number,
    "predicted_ms": _is_number,
    "predicted_time_speedup": _is_number,
    "data": lambda value: value is None or isinstance(value, str | Mapping),
    "warnings": _is_texts,
}


def _check_measured(name: str, measured: Mapping[str, Any]) -> None:
    for key, fits in MEASURED.items():
        if key in measured and not fits(measured[key]):
            raise De3Error(
                f'The operating point "{name}" has no sound "{key}" among what was measured: got '
                f"{reprlib.repr(measured[key])}. Calibrate again to write a new one."
            )


def _number(text: str, unit: str, divisor: float) -> float:
    if unit and text.endswith(unit):
        return parse_number(text.removesuffix(unit)) / divisor
    return parse_number(text)
