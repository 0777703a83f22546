"""The signals there are, each with what a policy must know about it.

Add one of your own:

    >>> SIGNALS.add("doubt", SignalKind(lambda view, params: 1 - max_probability(view.logits)))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.signals import formulas, single_row
from de3bert.exits.view import ExitView
from de3bert.registry import Registry

__all__ = ["SIGNALS", "Params", "SignalKind", "Values"]

Values = NDArray[np.float64]
Params = Mapping[str, float]


@dataclass(frozen=True)
class SignalKind:
    """How to compute a signal, and what a policy must know about it.

    Attributes:
        compute: (view, params) -> values, one per row (all axes but the last of the logits).
        defaults: the parameters it accepts, each finite and >= 0, with their defaults.
        needs_distances: reads `view.distances`.
        needs_certainty: reads `view.certainty`, what a router says.
        rising: higher is safer, as for a probability; otherwise lower is safer.
        safest: the value that no row can pass on the safe side, if there is one.
        range: the lowest and the highest value it can take; None when there are none. A threshold
            further out says nothing, and is taken as a mistake.
        one_row: the same value for a single row in plain floats: (logits, distances or None,
            params), lists of K numbers; with `needs_certainty` the row's certainty is among the
            params. Optional; makes a step of one row many times as fast.
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
    needs_certainty: bool = False
    range: tuple[float, float] | None = None


UNIT = (0.0, 1.0)
SIGNALS: Registry[SignalKind] = Registry("signal")


def _distance_ratio(view: ExitView, params: Params) -> Values:
    ratio: Values = formulas.distance_ratio(*formulas.nearest_two(view.logits, view.distances))
    return ratio


def _edr(view: ExitView, params: Params) -> Values:
    local = formulas.entropy(view.logits)
    fused: Values = formulas.edr(local, _distance_ratio(view, params), params["lambda"])
    return fused


def _certainty(view: ExitView, params: Params) -> Values:
    """What the router of the exit says: BERxiT's head, ConsistentEE's policy network."""
    assert view.certainty is not None  # a signal that needs it is not asked without it
    return view.certainty.astype(np.float64)


def _logits_only(function: Callable[..., Values], **options: bool) -> Callable[..., Values]:
    return lambda view, params: function(view.logits, **options)


SIGNALS.add(
    "entropy",
    SignalKind(_logits_only(formulas.entropy), safest=0.0, one_row=single_row.entropy, range=UNIT),
)
SIGNALS.add(
    "max_probability",
    SignalKind(
        _logits_only(formulas.max_probability),
        rising=True,
        safest=1.0,
        one_row=single_row.max_probability,
        range=UNIT,
    ),
)
SIGNALS.add(
    "energy",
    SignalKind(_logits_only(formulas.energy), safest=0.0, one_row=single_row.energy, range=UNIT),
)
SIGNALS.add(
    "raw_energy",
    SignalKind(_logits_only(formulas.energy, normalised=False), one_row=single_row.raw_energy),
)
SIGNALS.add(
    "distance_ratio",
    SignalKind(
        _distance_ratio,
        needs_distances=True,
        safest=0.0,
        one_row=single_row.distance_ratio,
        worst=single_row.worst_distance_ratio,
        range=UNIT,
    ),
)
SIGNALS.add(
    "edr",
    SignalKind(
        _edr,
        defaults={"lambda": 1.0},
        needs_distances=True,
        safest=0.0,
        one_row=single_row.edr,
        worst=single_row.worst_edr,
        range=UNIT,
    ),
)
SIGNALS.add(
    "certainty",
    SignalKind(
        _certainty,
        rising=True,
        safest=1.0,
        one_row=single_row.certainty,
        needs_certainty=True,
        range=UNIT,
    ),
)
