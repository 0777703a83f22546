"""The policy line of a bandit: `bandit(arms=0.5:1.0:0.1, c=2.0, mu=0.1)`, or `bandit` alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from de3bert.errors import UsageError
from de3bert.exits.bandit import Bandit
from de3bert.exits.line import parse_number, shown
from de3bert.exits.rules import Leave, Rule, RuleState
from de3bert.exits.view import ExitView

__all__ = ["BanditRule", "read_settings"]

ARMS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
NAMES = ("arms", "c", "mu")
FORM = "Write for example `bandit` or `bandit(arms=0.5:1.0:0.1, c=2.0, mu=0.1)`."
MOST_ARMS = 1000
DIGITS = 9  # of an arm in a range; 0.5 + 2 * 0.1 is 0.7 and not 0.7000000000000001


@dataclass(frozen=True)
class BanditRule(Rule):
    """The settings of a bandit, as they stand in a policy's line. It learns in a `Bandit`.

    Attributes:
        arms: the thresholds on max p to choose among, increasing, above 0 and at most 1.
        c: how much is explored.
        mu: what a layer costs: a row pays mu for the whole depth, and its share of it before.
    """

    arms: tuple[float, ...] = ARMS
    c: float = 2.0
    mu: float = 0.1

    sequential: ClassVar[bool] = True

    def __post_init__(self) -> None:
        arms = tuple(float(arm) for arm in self.arms)
        rising = all(low < high for low, high in zip((0.0, *arms), arms, strict=False))
        if not 0 < len(arms) <= MOST_ARMS or not rising or arms[-1] > 1:
            raise UsageError(
                "The arms of `bandit` are increasing thresholds on a probability, above 0 and at "
                f"most 1, up to {MOST_ARMS} of them; got {list(arms[:9])}."
            )
        object.__setattr__(self, "arms", arms)
        for name in ("c", "mu"):
            value = float(getattr(self, name))
            object.__setattr__(self, name, value)
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name} of `bandit` must be finite and >= 0, got {value!r}.")

    def fresh(self, exit_layers: Sequence[int]) -> Bandit:
        """A bandit that has seen nothing yet, with o_i = layer / depth.

        Args:
            exit_layers: of all exits, the final one last.
        """
        overheads = [layer / exit_layers[-1] for layer in exit_layers]
        return Bandit(self.arms, overheads, c=self.c, mu=self.mu)

    def step(self, state: RuleState, view: ExitView) -> tuple[Leave, RuleState]:
        raise UsageError(
            f"`{self}` learns from each row, so it cannot decide a batch at once. Predict with a "
            "classifier, which runs the rows one by one, or replay a trace."
        )

    def __str__(self) -> str:
        return f"bandit({self.without_mu}, mu={self.mu!r})"

    @property
    def without_mu(self) -> str:
        """The settings but mu, which a family of bandits leaves open."""
        return f"arms={_written(self.arms)}, c={self.c!r}"


def read_settings(inside: str | None) -> dict[str, Any]:
    """What stands between the parentheses: `arms=0.5:1.0:0.1, c=2.0, mu=0.1`, in any order.

    Arms are a range `low:high:step`, both ends in it, or a list `0.5/0.7/0.9`. What is left out is
    left out.
    """
    settings: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in (inside or "").split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in NAMES or not equals or key in settings:
            raise UsageError(f'Cannot read "{shown(part)}" in `bandit(...)`. {FORM}')
        settings[key] = _arms(value) if key == "arms" else _number(value)
    return settings


def _arms(text: str) -> tuple[float, ...]:
    if ":" not in text:
        return tuple(_number(piece) for piece in text.split("/"))
    ends = [_number(piece) for piece in text.split(":")]
    if len(ends) != 3 or not (ends[2] > 0 and ends[0] < ends[1]):
        raise UsageError(f'Cannot read the arms "{shown(text)}" of `bandit`. {FORM}')
    low, high, step = ends
    steps = (high - low) / step
    if steps >= MOST_ARMS or not math.isclose(steps, round(steps), abs_tol=1e-6):
        raise UsageError(
            f'The arms "{shown(text)}" of `bandit` must lead from {low:g} to {high:g} in whole '
            f"steps, and have at most {MOST_ARMS}. {FORM}"
        )
    return _range(low, step, round(steps) + 1)


def _range(low: float, step: float, count: int) -> tuple[float, ...]:
    return tuple(round(low + number * step, DIGITS) for number in range(count))


def _written(arms: tuple[float, ...]) -> str:
    """The arms as a range where they are one, else as a list; reads back as the same arms."""
    if len(arms) > 2:
        step = round(arms[1] - arms[0], DIGITS)
        if _range(arms[0], step, len(arms)) == arms:
            return f"{arms[0]!r}:{arms[-1]!r}:{step!r}"
    return "/".join(repr(arm) for arm in arms)


def _number(text: str) -> float:
    number = parse_number(text)
    if math.isnan(number) and text != "nan":
        raise UsageError(f'"{shown(text)}" in `bandit(...)` is not a number. {FORM}')
    return number
