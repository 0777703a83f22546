"""A signal by name: `entropy`, `edr(lambda=1.0)`. Parses, prints, and reads an exit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits.line import one_line, parse_number, shown
from de3bert.exits.signals import single_row
from de3bert.exits.signals.registry import SIGNALS, Params, SignalKind, Values
from de3bert.exits.view import ExitView
from de3bert.registry import unknown

__all__ = ["SIGNALS", "Signal", "SignalKind"]

TEXT = re.compile(r"(?P<name>[^\s()]+)\s*(?:\((?P<params>[^()]*)\))?")
FORM = "Write a name, with parameters where it has some: `entropy` or `edr(lambda=1.0)`."
NO_DISTANCES = (
    'The signal "{name}" needs distances to class prototypes, but this model or trace has none. '
    "Use a policy on the logits alone, such as `entropy < 0.2`, or train with prototypes."
)
NO_CERTAINTY = (
    'The signal "{name}" needs a router that estimates certainty, but this model or trace has '
    "none. Use a policy on the logits alone, such as `entropy < 0.2`, or train a method with a "
    "router."
)
NOT_A_NUMBER = (
    "The signal `{signal}` is not a number (NaN) for a row at layer {layer}: it cannot be decided. "
    "A logit, a distance or a certainty is NaN: check the weights, the prototypes and the input."
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
        line = one_line(text, "A signal", FORM)
        match = TEXT.fullmatch(line)
        if match is None:
            raise UsageError(
                f'Cannot read "{shown(line)}" as a signal. {FORM} Available: {", ".join(SIGNALS)}.'
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
    def needs_certainty(self) -> bool:
        return self.kind.needs_certainty

    @property
    def rising(self) -> bool:
        """True when higher is safer: such a signal leaves at `>`, the others at `<`."""
        return self.kind.rising

    def __call__(self, view: ExitView) -> Values:
        """The signal of each row, in float64. (rows, classes) -> (rows,)

        Float64, because a sure row has 1 - p below the step of float32: there all sure rows tie.

        Raises:
            De3Error: a value is NaN. It compares as false and would silently keep its row.
        """
        distances, certainty = self._distances(view), self._certainty(view)
        exact = ExitView(
            view.layer,
            view.logits.astype(np.float64),
            None if distances is None else distances.astype(np.float64),
            certainty=None if certainty is None else certainty.astype(np.float64),
        )
        values = np.asarray(self.kind.compute(exact, dict(self.params)), dtype=np.float64)
        if np.isnan(values).any():
            raise De3Error(NOT_A_NUMBER.format(signal=self, layer=view.layer))
        return values

    def of_row(self, view: ExitView) -> float:
        """The signal of a view's only row: `self(view)[0]` but for rounding. (1, classes) -> ()"""
        compute = self.kind.one_row
        if compute is None or view.logits.shape[1] > single_row.FEW_CLASSES:
            return float(self(view)[0])
        distances, certainty = self._distances(view), self._certainty(view)
        row = None if distances is None else distances[0].tolist()
        params = dict(self.params)
        if certainty is not None:
            params["certainty"] = float(certainty[0])
        value = compute(view.logits[0].tolist(), row, params)
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

    def _certainty(self, view: ExitView) -> NDArray[np.floating[Any]] | None:
        """What the signal reads of the certainty, (rows,): all, or nothing at all."""
        if not self.needs_certainty:
            return None
        if view.certainty is None:
            raise UsageError(NO_CERTAINTY.format(name=self.name))
        return view.certainty


def _params(name: str, inside: str) -> list[tuple[str, float]]:
    pairs: list[tuple[str, float]] = []
    for part in filter(None, (piece.strip() for piece in inside.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        number = parse_number(value)
        if not equals or math.isnan(number):
            raise UsageError(
                f'Cannot read "{shown(part)}" in `{name}({shown(inside)})`: write '
                "parameter=number, as in `edr(lambda=1.0)`."
            )
        if key in dict(pairs):
            raise UsageError(f'"{key}" is given twice in `{name}({shown(inside)})`.')
        pairs.append((key, number))
    return pairs


def _unknown_param(name: str, key: str, defaults: Params) -> str:
    if defaults:
        return unknown(f"parameter of {name}", key, defaults)
    return f'{name} takes no parameters, got "{key}". Write `{name}`.'
