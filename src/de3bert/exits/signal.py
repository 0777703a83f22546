"""A signal by name: `entropy`, `edr(lambda=1.0)`. Parses, prints, and reads an exit.

Add one of your own:

    >>> SIGNALS.add("doubt", SignalKind(lambda view, params: 1 - max_probability(view.logits)))
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits import signals
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
    """

    compute: Callable[[ExitView, Params], Values]
    defaults: Params = field(default_factory=dict)
    needs_distances: bool = False
    rising: bool = False
    safest: float | None = None


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


SIGNALS.add("entropy", SignalKind(_logits_only(signals.entropy), safest=0.0))
SIGNALS.add(
    "max_probability",
    SignalKind(_logits_only(signals.max_probability), rising=True, safest=1.0),
)
SIGNALS.add("energy", SignalKind(_logits_only(signals.energy), safest=0.0))
SIGNALS.add("raw_energy", SignalKind(_logits_only(signals.energy, normalised=False)))
SIGNALS.add("distance_ratio", SignalKind(_distance_ratio, needs_distances=True, safest=0.0))
SIGNALS.add("edr", SignalKind(_edr, defaults={"lambda": 1.0}, needs_distances=True, safest=0.0))


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
        if not self.needs_distances:
            exact = ExitView(view.layer, view.logits.astype(np.float64))
        elif view.distances is None:
            raise UsageError(NO_DISTANCES.format(name=self.name))
        else:
            exact = ExitView(
                view.layer, view.logits.astype(np.float64), view.distances.astype(np.float64)
            )
        values = np.asarray(self.kind.compute(exact, dict(self.params)), dtype=np.float64)
        if np.isnan(values).any():
            raise De3Error(NOT_A_NUMBER.format(signal=self, layer=view.layer))
        return values


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
