"""Operating points: a named policy together with what was asked for and what was measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from de3bert.errors import De3Error, UsageError
from de3bert.exits.line import one_line, parse_number, shown
from de3bert.exits.policy import Policy

__all__ = ["OperatingPoint", "Target"]

Kind = Literal["layers", "drop", "accuracy", "agree", "latency", "speedup", "full"]
ACCEPTED = (
    "`layers=2.0` (half the layers), `drop=0.01` or `drop=1%` (at most 0.01 below the full model), "
    "`accuracy=0.9` (at least 0.9), `agree=0.99` (the full model's answer for at least 0.99 of "
    "texts), `latency=8ms` (at most 8 predicted milliseconds per text), `speedup=2.5` (predicted "
    "time 2.5 times below that of the full model), `full` (no early exit)"
)
MORE = (
    "drop, accuracy and agree may be promised: `agree=0.99 confidence=0.95`. A layer ratio may be "
    "kept on live traffic, down to some agreement or within thresholds: `layers=4.0 keep`, "
    "`layers=4.0 keep agree=0.97`, `layers=4.0 keep within=0.1:0.6`"
)
PROMISED = ("drop", "accuracy", "agree")
RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "layers": ("at least 1", lambda value: value >= 1),
    "drop": ("from 0 to 1", lambda value: 0 <= value <= 1),
    "accuracy": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "agree": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "latency": ("above 0", lambda value: value > 0),
    "speedup": ("at least 1", lambda value: value >= 1),
}
# The unit that may follow the number, and what to divide by then.
SHARES = ("drop", "accuracy", "agree")
UNITS = {**{kind: ("%", 100.0) for kind in SHARES}, "latency": ("ms", 1.0)}

VERSION = 1  # of stored points


@dataclass(frozen=True)
class Target:
    """What an operating point must give.

    `layers` is a ratio of layers, those of the model compared with (`Trace.base`, for a whole model
    its own) to those executed. `latency` (mean milliseconds per text, one text at a time,
    tokenising included) and `speedup` (mean time of the full model over mean time) are times
    predicted by a cost model of one machine.

    Attributes:
        confidence: the probability with which the target is promised for other rows; None where it
            only holds on calibration rows.
        keep: whether the ratio of layers is kept on live traffic.
        floor: of a ratio that is kept the agreement on calibration rows below which it does not go.
        within: instead, the thresholds between which it moves.

    Example:
        >>> Target.parse("drop=1%")
        Target(kind='drop', value=0.01, confidence=None, keep=False, floor=None, within=None)
    """

    kind: Kind
    value: float = 0.0
    confidence: float | None = None
    keep: bool = False
    floor: float | None = None
    within: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.confidence is not None and self.kind not in PROMISED:
            raise UsageError(f"Nothing of `{self.kind}` can be promised: {MORE}.")
        if self.keep and self.kind != "layers":
            raise UsageError(f"Only a ratio of layers can be kept, not `{self.kind}`: {MORE}.")
        if (self.floor is not None or self.within is not None) and not self.keep:
            raise UsageError(f"A floor or range of thresholds goes with `keep`: {MORE}.")
        if self.floor is not None and self.within is not None:
            raise UsageError(f"Give a floor or a range of thresholds, not both: {MORE}.")

    @classmethod
    def parse(cls, text: str) -> Target:
        line = one_line(text, "A target", f"Accepted: {ACCEPTED}.")
        if line == "full":
            return cls("full")
        tight = re.sub(r"\s+(?=%|ms\b)", "", re.sub(r"\s*=\s*", "=", line))
        first, *rest = tight.split(" ")
        kind, equals, value = first.partition("=")
        if kind not in RANGES or not equals:
            raise UsageError(f'Cannot read the target "{shown(line)}". Accepted: {ACCEPTED}.')
        number = _value(kind, value)
        return cls(kind, number, **_more(rest, line))  # type: ignore[arg-type]  # RANGES has them

    @property
    def is_time(self) -> bool:
        """Whether it takes a cost model to tell if it is met."""
        return self.kind in ("latency", "speedup")

    def __str__(self) -> str:
        if self.kind == "full":
            return self.kind
        text = f"{self.kind}={self.value!r}{'ms' if self.kind == 'latency' else ''}"
        text += "" if self.confidence is None else f" confidence={self.confidence!r}"
        text += " keep" if self.keep else ""
        text += "" if self.floor is None else f" agree={self.floor!r}"
        return (
            text if self.within is None else f"{text} within={self.within[0]!r}:{self.within[1]!r}"
        )


@dataclass(frozen=True)
class OperatingPoint:
    """A policy under a name, with what it was measured to give on calibration data.

    Attributes:
        name: what users ask for, such as `balanced`.
        policy: when to leave.
        target: what was asked for, as text.
        measured: rows, metric, score, score_interval, full_score, layers_mean, layer_speedup,
            layer_speedup_interval (95 %, over rows), exit_histogram (layer as text -> rows), data,
            date; with a cost model also predicted_ms and predicted_time_speedup; `guarantee` where
            something is promised, `traffic` where the threshold was fitted to unlabelled texts;
            `warnings` where there were some. Plain JSON values; `MeasuredScores` has their types.
    """

    name: str
    policy: Policy
    target: str
    measured: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is stored: a `StoredPoint` of the newest version, in plain JSON values."""
        return {
            "version": VERSION,
            "name": self.name,
            "policy": self.policy.to_json(),
            "target": self.target,
            "measured": dict(self.measured),
        }

    @classmethod
    def from_json(cls, document: object) -> OperatingPoint:
        """Reads what `to_json` wrote; De3Error names the part that is missing or wrong."""
        # Here and not above: pydantic takes as long to import as all the rest of `exits`.
        from de3bert.exits.stored_point import StoredPoint

        stored = StoredPoint.read(document)
        try:
            policy = Policy.from_json(stored.policy)
        except UsageError as error:
            raise De3Error(f"The operating point {shown(stored.name)!r}: {error}") from error
        return cls(stored.name, policy, stored.target, dict(stored.measured))


def _value(kind: str, text: str) -> float:
    number = _number(text, *UNITS.get(kind, ("", 1.0)))
    words, fits = RANGES[kind]
    if not (math.isfinite(number) and fits(number)):
        raise UsageError(f'{kind} must be {words}, got "{shown(text)}". Accepted: {ACCEPTED}.')
    return number


def _more(words: Sequence[str], line: str) -> dict[str, Any]:
    """What may follow a target: `confidence=0.95`, `keep`, `agree=0.97`, `within=0.1:0.6`."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if word == "keep":
            found["keep"] = True
        elif name == "confidence":
            found["confidence"] = checked_confidence(_number(text, "%", 100.0), text)
        elif name == "agree":
            found["floor"] = _value("agree", text)
        elif name == "within":
            found["within"] = _range(text)
        else:
            raise UsageError(
                f'Cannot read "{shown(word)}" in the target "{shown(line)}". {_sentence(MORE)}.'
            )
    return found


def checked_confidence(value: float, text: str) -> float:
    """A probability that can be promised."""
    if not 0.5 <= value < 1:
        raise UsageError(
            f'confidence is a probability from 0.5 to below 1, such as 0.95; got "{shown(text)}".'
        )
    return value


def _range(text: str) -> tuple[float, float]:
    ends = [parse_number(part) for part in text.split(":")]
    if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] == ends[1]:
        raise UsageError(f'within has two thresholds, as in within=0.1:0.6; got "{shown(text)}".')
    return ends[0], ends[1]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _number(text: str, unit: str, divisor: float) -> float:
    if unit and text.endswith(unit):
        return parse_number(text.removesuffix(unit)) / divisor
    return parse_number(text)
