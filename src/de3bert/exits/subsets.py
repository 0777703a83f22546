"""Searching the subsets of a model's exits for the cheapest, whatever the price is made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

__all__ = ["Layers", "Price", "Step", "cheapest"]

Layers: TypeAlias = tuple[int, ...]  # of internal exits, increasing
Price: TypeAlias = Callable[[Layers], float]  # milliseconds; infinite where the target is not met

EXHAUSTIVE = 7  # up to so many exits every subset is tried: 128 of them
ROUNDING = 1e-9  # relative; two prices nearer than this are the same


@dataclass(frozen=True)
class Step:
    """One exit dropped, or added back.

    Attributes:
        action: what was done.
        layer: the exit it was done to.
        predicted_ms: the price after it; None when the target is not met.
        gain_ms: how much less that is than before; None when either is not there.
    """

    action: Literal["drop", "add"]
    layer: int
    predicted_ms: float | None
    gain_ms: float | None

    @classmethod
    def between(
        cls, action: Literal["drop", "add"], layer: int, before: float, after: float
    ) -> Step:
        gain = before - after
        known = math.isfinite(after)
        return cls(action, layer, after if known else None, gain if math.isfinite(gain) else None)


def cheapest(every: Layers, free: Layers, price: Price) -> tuple[Layers, tuple[Step, ...]]:
    """The cheapest subset of `every` that drops only layers in `free`, and the way there.

    Nothing is dropped without a gain: of equal prices the subset with more exits wins. With up to
    seven layers in `free` all subsets are tried; with more it is a greedy search, which may miss
    the best.
    """
    if len(free) > EXHAUSTIVE:
        return _greedy(every, free, price)
    subsets = [
        _without(every, *dropped)
        for size in range(len(free) + 1)
        for dropped in combinations(free, size)
    ]
    least = min(price(subset) for subset in subsets)
    equals = [subset for subset in subsets if price(subset) <= least * (1 + ROUNDING)]
    best = max(equals, key=len)
    return best, _way(every, best, price)


def _greedy(every: Layers, free: Layers, price: Price) -> tuple[Layers, tuple[Step, ...]]:
    """Drops the exit that is missed least until all are missed, then adds back what helps."""
    now, trail = every, []
    while options := [layer for layer in now if layer in free]:
        layer = min(options, key=lambda each: price(_without(now, each)))
        after = _without(now, layer)
        # As long as the target is not met there is nothing to lose: go on looking.
        if math.isfinite(price(now)) and not _is_less(price(after), price(now)):
            break
        trail.append(Step.between("drop", layer, price(now), price(after)))
        now = after
    while options := [layer for layer in every if layer not in now]:
        layer = min(options, key=lambda each: price(_with(now, each)))
        after = _with(now, layer)
        if not _is_less(price(after), price(now)):
            break
        trail.append(Step.between("add", layer, price(now), price(after)))
        now = after
    return now, tuple(trail)


def _is_less(after: float, before: float) -> bool:
    return after < before * (1 - ROUNDING)


def _way(every: Layers, best: Layers, price: Price) -> tuple[Step, ...]:
    """From all exits to the best subset, at each step dropping what is missed least."""
    now, trail = every, []
    while options := [layer for layer in now if layer not in best]:
        layer = min(options, key=lambda each: price(_without(now, each)))
        after = _without(now, layer)
        trail.append(Step.between("drop", layer, price(now), price(after)))
        now = after
    return tuple(trail)


def _without(layers: Layers, *dropped: int) -> Layers:
    return tuple(layer for layer in layers if layer not in dropped)


def _with(layers: Layers, added: int) -> Layers:
    return tuple(sorted((*layers, added)))
