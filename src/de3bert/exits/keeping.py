"""A speed that is kept: the threshold moves along the calibrated curve as traffic asks for it.

A threshold that halves the layers of calibration rows does not halve those of other texts. Here the
number of layers really executed is fed back: after every few rows the threshold moves, by less and
less, along thresholds that were calibrated, and never beyond the ends of that stretch. It reads no
label, and what it does depends on the rows before it alone, not on how they were batched.

Its policy line is `keep(mean=4.0, along=6.0:0.21/4.0:0.4/3.0:0.52) edr(lambda=1.0)`: at 4.0 layers
a row in the mean, thresholds from 0.21 to 0.52, of which 0.4 gave 4.0 layers on calibration rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from de3bert.errors import De3Error, UsageError
from de3bert.exits.line import parse_number, shown
from de3bert.exits.rules import Leave, Rule, RuleState, Threshold
from de3bert.exits.signals.parse import Signal
from de3bert.exits.view import ExitView

__all__ = ["MOST_KNOTS", "NO_BANDIT", "KeepRule", "Keeper", "read_keep"]

MOST_KNOTS = 64
EVERY = 16  # rows that share a threshold, so that they can be a batch
RATE = 0.005  # layers of the curve per layer too many, of one row; the slowest it gets
NAMES = ("mean", "along", "rate", "every")
FORM = "Write for example `keep(mean=4.0, along=6.0:0.21/4.0:0.4/3.0:0.52) edr(lambda=1.0)`."

NO_BANDIT = (
    "`bandit` chooses its thresholds itself as it answers, so a controller has nothing to move. "
    "Keep a speed with a signal, such as `entropy` or `edr`."
)


@dataclass(frozen=True)
class KeepRule(Rule):
    """The settings of a controller, as they stand in a policy's line. It moves in a `Keeper`.

    Attributes:
        signal: what the threshold is on.
        mean: layers per row to keep in the mean.
        along: (layers, threshold) pairs of the calibrated curve, from many layers to few.
        rate: how fast it follows in the long run.
        every: rows between two moves.
        count: exits in a row that must pass the threshold.
    """

    signal: Signal
    mean: float
    along: tuple[tuple[float, float], ...]
    rate: float = RATE
    every: int = EVERY
    count: int = 1

    sequential: ClassVar[bool] = True

    def __post_init__(self) -> None:
        falling = all(a[0] > b[0] for a, b in pairwise(self.along))
        sign = -1.0 if self.signal.rising else 1.0
        loosening = all(sign * a[1] <= sign * b[1] for a, b in pairwise(self.along))
        sound = all(math.isfinite(value) for knot in self.along for value in knot)
        if not 2 <= len(self.along) <= MOST_KNOTS or not (falling and loosening and sound):
            raise UsageError(
                f"`along` of `keep` has 2 to {MOST_KNOTS} points layers:threshold, the layers "
                f"falling and the thresholds ever looser, got {list(self.along[:4])}. {FORM}"
            )
        most, least = self.along[0][0], self.along[-1][0]
        if not (math.isfinite(self.mean) and least <= self.mean <= most):
            raise UsageError(
                f"`keep` holds a mean of {least:g} to {most:g} layers here, not {self.mean:g}. "
                f"{FORM}"
            )
        if not 0 < self.rate <= 1 or not 1 <= self.every <= 10_000:
            raise UsageError(
                f"rate of `keep` lies above 0 and is at most 1, every is a whole number from 1 to "
                f"10000; got rate={self.rate:g}, every={self.every}. {FORM}"
            )

    def fresh(self, exit_layers: Sequence[int]) -> Keeper:
        """A controller that has seen nothing yet, at the threshold that calibration rows have."""
        return Keeper(self)

    def threshold_at(self, layers: float) -> float:
        """The threshold that gave so many layers on calibration rows, linear between knots."""
        for (more, before), (fewer, after) in pairwise(self.along):
            if layers >= fewer:
                part = (more - layers) / (more - fewer)
                return before + min(1.0, max(0.0, part)) * (after - before)
        return self.along[-1][1]

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        raise UsageError(
            "`keep` moves from row to row, so it cannot decide a batch at once. Predict with a "
            "classifier, which runs the rows in their order, or replay a trace."
        )

    def __str__(self) -> str:
        along = "/".join(f"{layers!r}:{threshold!r}" for layers, threshold in self.along)
        count = f" x {self.count}" if self.count > 1 else ""
        settings = f"mean={self.mean!r}, along={along}, rate={self.rate!r}, every={self.every}"
        return f"keep({settings}) {self.signal}{count}"


class Keeper:
    """Where a controller stands.

    After each block of `every` rows that executed L layers in the mean, the position u moves

        u <- u + g (mean - L),   g = max(rate every, 1 / number of the block), at most 1

    within the ends of the curve; the next block has the threshold of u. The first blocks find the
    place, as a running mean would, later ones follow slowly.

    Attributes:
        position: u, in layers of the calibrated curve.
        seen: rows so far.
        rows: of them, those of the block that is not full yet.
        layers: what these have executed.
    """

    def __init__(self, rule: KeepRule) -> None:
        self.settings = rule
        self.position = rule.mean
        self.seen = self.rows = self.layers = 0

    @property
    def present(self) -> Threshold:
        """The rule of the next row."""
        rule = self.settings
        threshold = rule.threshold_at(self.position)
        return Threshold(rule.signal, ">" if rule.signal.rising else "<", threshold, rule.count)

    @property
    def room(self) -> int:
        """Rows that the next move is away."""
        return self.settings.every - self.rows

    def learn(self, layers: Sequence[int]) -> None:
        """Takes in what rows have executed, at most `room` of them."""
        if len(layers) > self.room:
            raise ValueError(f"{len(layers)} rows, but the threshold changes after {self.room}")
        self.rows += len(layers)
        self.seen += len(layers)
        self.layers += int(sum(layers))
        if not self.room:
            self._move()

    def _move(self) -> None:
        rule = self.settings
        gain = min(1.0, max(rule.rate * rule.every, rule.every / self.seen))
        moved = self.position + gain * (rule.mean - self.layers / self.rows)
        self.position = min(rule.along[0][0], max(rule.along[-1][0], moved))
        self.rows = self.layers = 0

    def to_json(self) -> dict[str, Any]:
        """All that it takes to go on from here, in another process too."""
        names = ("position", "seen", "rows", "layers")
        return {name: getattr(self, name) for name in names}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continues from what `to_json` returned; De3Error for what it cannot have written."""
        rule = self.settings
        counts = [state.get(name) for name in ("seen", "rows", "layers")]
        place = state.get("position")
        sound = all(type(value) is int and 0 <= value < 10**15 for value in counts)
        if not sound or not isinstance(place, int | float) or not math.isfinite(place):
            raise De3Error(f"This is not the state of a controller: {shown(str(dict(state)))}.")
        if counts[1] >= rule.every or counts[1] > counts[0]:  # type: ignore[operator]
            raise De3Error("The state is that of a controller with other settings.")
        self.position = min(rule.along[0][0], max(rule.along[-1][0], float(place)))
        self.seen, self.rows, self.layers = counts  # type: ignore[assignment]


def read_keep(inside: str, signal: Signal, count: int) -> KeepRule:
    """The rule of `keep(mean=4.0, along=6.0:0.21/4.0:0.4) SIGNAL`, `inside` the parentheses."""
    settings: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in inside.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in NAMES or not equals or key in settings:
            raise UsageError(f'Cannot read "{shown(part)}" in `keep(...)`. {FORM}')
        settings[key] = _knots(value) if key == "along" else _number(value)
    if missing := [name for name in NAMES[:2] if name not in settings]:
        raise UsageError(f"`keep` needs {' and '.join(missing)}. {FORM}")
    if "every" in settings:
        settings["every"] = _whole(settings["every"])
    return KeepRule(signal, count=count, **settings)


def _knots(text: str) -> tuple[tuple[float, float], ...]:
    pairs = [piece.split(":") for piece in text.split("/")]
    if any(len(pair) != 2 for pair in pairs):
        raise UsageError(f'Cannot read the points "{shown(text)}" of `keep`. {FORM}')
    return tuple((_number(layers), _number(threshold)) for layers, threshold in pairs)


def _number(text: str) -> float:
    number = parse_number(text)
    if not math.isfinite(number):
        raise UsageError(f'"{shown(text)}" in `keep(...)` is not a number. {FORM}')
    return number


def _whole(number: float) -> int:
    if number % 1 or number < 1:
        raise UsageError(f"every of `keep` is a whole number from 1 up, got {number:g}. {FORM}")
    return int(min(number, 1e9))
