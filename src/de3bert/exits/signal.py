"""A signal by name: `entropy`, `edr(lambda=1.0)`. Parses, prints, and reads an exit.

Add one of your own:

    >>> SIGNALS.add("doubt", SignalKind(lambda view, params: 1 - max_probability(view.logits)))
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits import one_row, signals
from de3bert.exits.view import ExitView
from de3bert.registry import Registry, unknown

__all__ = ["SIGNALS", "Signal", "SignalKind"]

Values = NDArray[np.float64]
Params = Mapping[str, float]

TEXT = re.compile(r"(?P<name>[^\s()]+)\s*(?:\((?P<params>[^()]*)\))?")
NO_DISTANCES = (
    'The signal "{name}" needs distances to class prototypes, but this model or trace has none. '
    "Use a policy on the logits alone, such as `entropy < 0.2`, or train with prototypes."
)
NOT_A_NUMBER = (
    "The signal `{signal}` is not a number (NaN) for a row at layer {layer}: it cannot be decided. "
    "A logit or a distance is NaN: check the weights, the prototypes and the input."
)


@dataclass(frozen=True)
class SignalKind:
    """How to compute a signal, and what a policy must know about it.

    Attributes:
        compute: (view, params) -> values, one per row (all axes but the last of the logits).
        defaults: the parameters it accepts, each finite and >= 0, with their defaults.
        needs_distances: reads `view.distances`.
        rising: higher is safer, as for a probability; otherwise lower is safer.
        safest: the value that no row can pass on the safe side, if there is one.
        one_row: the same value for a single row in plain floats: (logits, distances or None,
            params), lists of K numbers. Optional; makes a step of one row many times as fast.
        worst: (logits, params) -> the value that this row cannot pass on the unsafe side, whatever
            its distances. Optional; where it meets the threshold no distance is computed.
    """

    compute: Callable[[ExitView, Params], Values]
    defaults: Params = field(default_factory=dict)
    needs_distances: bool = False
    rising: bool = False
    safest: float | None = None
    one_row: Callable[[list[float], list[float] | None, Params], float] | None = None
    worst: Callable[[list[float], Params], float] | None = None


SIGNALS: Registry[SignalKind] = Registry("signal")


def _distance_ratio(view: ExitView, params: Params) -> Values:
    ratio: Values = signals.distance_ratio(*signals.nearest_two(view.logits, view.distances))
    return ratio


def _edr(view: ExitView, params: Params) -> Values:
    local = signals.entropy(view.logits)
    fused: Values = signals.edr(local, _distance_ratio(view, params), params["lambda"])
    return fused


def _logits_only(function: Callable[..., Values], **options: bool) -> Callable[..., Values]:
    return lambda view, params: function(view.logits, **options)


SIGNALS.add(
    "entropy", SignalKind(_logits_only(signals.entropy), safest=0.0, one_row=one_row.entropy)
)
SIGNALS.add(
    "max_probability",
    SignalKind(
        _logits_only(signals.max_probability),
        rising=True,
        safest=1.0,
        one_row=one_row.max_probability,
    ),
)
SIGNALS.add("energy", SignalKind(_logits_only(signals.energy), safest=0.0, one_row=one_row.energy))
SIGNALS.add(
    "raw_energy",
    SignalKind(_logits_only(signals.energy, normalised=False), one_row=one_row.raw_energy),
)
SIGNALS.add(
    "distance_ratio",
    SignalKind(
        _distance_ratio,
        needs_distances=True,
        safest=0.0,
        one_row=one_row.distance_ratio,
        worst=one_row.worst_distance_ratio,
    ),
)
SIGNALS.add(
    "edr",
    SignalKind(
        _edr,
        defaults={"lambda": 1.0},
        needs_distances=True,
        safest=0.0,
        one_row=one_row.edr,
        worst=one_row.worst_edr,
    ),
)


@dataclass(frozen=True)
class Signal:
    """A named signal with all its parameters.

    Example:
        >>> str(Signal.parse("edr(lambda=2)"))
        'edr(lambda=2.0)'
    """

    name: str
    params: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        """Fills in defaults, so that equal signals compare equal and print alike."""
        defaults, given = SIGNALS[self.name].defaults, dict(self.params)
        for key, value in given.items():
            if key not in defaults:
                raise UsageError(_unknown_param(self.name, key, defaults))
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{key} of {self.name} must be finite and >= 0, got {value!r}.")
        filled = {key: float(given.get(key, value)) for key, value in defaults.items()}
        object.__setattr__(self, "params", tuple(filled.items()))

    @classmethod
    def parse(cls, text: str) -> Signal:
        """Reads `entropy` or `edr(lambda=1.0)`; parameters left out take their defaults."""
        match = TEXT.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f'Cannot read "{text}" as a signal. Write a name, with parameters where it has '
                f"some: `entropy` or `edr(lambda=1.0)`. Available: {', '.join(SIGNALS)}."
            )
        name, inside = match["name"], match["params"] or ""
        SIGNALS[name]  # an unknown name is reported before its parameters
        return cls(name, tuple(_params(name, inside)))

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.params)
        return f"{self.name}({inside})" if inside else self.name

    @property
    def kind(self) -> SignalKind:
        return SIGNALS[self.name]

    @property
    def needs_distances(self) -> bool:
        return self.kind.needs_distances

    @property
    def rising(self) -> bool:
        """True when higher is safer: such a signal leaves at `>`, the others at `<`."""
        return self.kind.rising

    def __call__(self, view: ExitView) -> Values:
        """The signal of each row, in float64. (rows, classes) -> (rows,)

        Float64, because a sure row has 1 - p below the step of float32: there all sure rows tie.

        Raises:
            De3Error: a value is NaN. It compares as false and would keep its row without a word.
        """
        distances = self._distances(view)
        exact = ExitView(
            view.layer,
            view.logits.astype(np.float64),
            None if distances is None else distances.astype(np.float64),
        )
        values = np.asarray(self.kind.compute(exact, dict(self.params)), dtype=np.float64)
        if np.isnan(values).any():
            raise De3Error(NOT_A_NUMBER.format(signal=self, layer=view.layer))
        return values

    def of_row(self, view: ExitView) -> float:
        """The signal of a view's only row: `self(view)[0]` but for rounding. (1, classes) -> ()"""
        compute = self.kind.one_row
        if compute is None or view.logits.shape[1] > one_row.FEW_CLASSES:
            return float(self(view)[0])
        distances = self._distances(view)
        row = None if distances is None else distances[0].tolist()
        value = compute(view.logits[0].tolist(), row, dict(self.params))
        if math.isnan(value):
            raise De3Error(NOT_A_NUMBER.format(signal=self, layer=view.layer))
        return value

    def worst_of_rows(self, view: ExitView) -> Iterator[float]:
        """Row by row, what the signal cannot pass on the unsafe side, from the logits alone.

        Nothing is worse than infinity, which is what a signal without such a bound gives.
        """
        worst, params = self.kind.worst, dict(self.params)
        if worst is None:
            return iter([-math.inf if self.rising else math.inf])
        return (worst(row, params) for row in view.logits.tolist())

    def _distances(self, view: ExitView) -> NDArray[np.floating[Any]] | None:
        """What the signal reads of the distances, (rows, classes): all, or nothing at all."""
        if not self.needs_distances:
            return None
        distances = view.fetched().distances
        if distances is None:
            raise UsageError(NO_DISTANCES.format(name=self.name))
        return distances


def _params(name: str, inside: str) -> list[tuple[str, float]]:
    pairs: list[tuple[str, float]] = []
    for part in filter(None, (piece.strip() for piece in inside.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not equals or math.isnan(number):
            raise UsageError(
                f'Cannot read "{part}" in `{name}({inside})`: write parameter=number, '
                "as in `edr(lambda=1.0)`."
            )
        if key in dict(pairs):
            raise UsageError(f'"{key}" is given twice in `{name}({inside})`.')
        pairs.append((key, number))
    return pairs


def _unknown_param(name: str, key: str, defaults: Params) -> str:
    if defaults:
        return unknown(f"parameter of {name}", key, defaults)
    return f'{name} takes no parameters, got "{key}". Write `{name}`.'
