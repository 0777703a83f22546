"""A family is a policy with its number left open: `entropy`, `edr(lambda=1.0) x 2`, `patience`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from de3bert.errors import UsageError
from de3bert.exits.bandit_rule import BanditRule, read_settings
from de3bert.exits.line import one_line, parse_count, shown
from de3bert.exits.policy import Policy, longest_line
from de3bert.exits.rules import FixedLayer, Oracle, Patience, Threshold
from de3bert.exits.signals.parse import SIGNALS, Signal
from de3bert.exits.units import Over
from de3bert.registry import unknown

__all__ = ["Family"]

Kind = Literal["threshold", "patience", "layers", "oracle", "bandit"]
WORDS: dict[str, Kind] = {"patience": "patience", "layers": "layers", "oracle": "oracle"}
BANDIT = re.compile(r"bandit\s*(?:\((?P<settings>[^()]*)\))?")
EXAMPLES = "Examples: `entropy`, `edr(lambda=1.0)`, `entropy x 2`, `patience`."
MUS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the bandits that make a family
TEXT = re.compile(r"(?P<signal>.*?\S)(?:\s+x\s*(?P<count>\S+))?(?:\s+(?P<over>max|mean))?")


@dataclass(frozen=True)
class Family:
    """All policies that differ only in their number; a curve shows one family.

    Attributes:
        kind: what the open number is: a threshold, the patience, a layer, mu of a bandit, or
            nothing (oracle).
        signal: the signal of a threshold family.
        count: how many exits in a row must pass the threshold.
        bandit: the settings of a family of bandits.
        mus: the values of mu that such a family has; one alone is a family with one member.
        over: how the words of a sentence act together: the `max` or the `mean` of their signals.
    """

    kind: Kind
    signal: Signal | None = None
    count: int = 1
    bandit: BanditRule | None = None
    mus: tuple[float, ...] = MUS
    over: Over = "max"

    def __post_init__(self) -> None:
        if self.kind == "bandit" and self.bandit is None:
            object.__setattr__(self, "bandit", BanditRule())

    @classmethod
    def of(cls, family: str | Signal | Family, count: int = 1) -> Family:
        """From text, a signal or a family; a `count` above 1 replaces the one given there."""
        if isinstance(family, str):
            family = cls.parse(family)
        elif isinstance(family, Signal):
            family = cls("threshold", family)
        if count == 1:
            return family
        if family.kind != "threshold" or count < 1:
            raise UsageError(
                f"count={count} does not fit `{family}`: it goes with a signal, from 1."
            )
        return replace(family, count=count)

    @classmethod
    def parse(cls, text: str) -> Family:
        line = one_line(text, "A policy family", EXAMPLES, longest_line(text))
        if line in WORDS:
            return cls(WORDS[line])
        if found := BANDIT.fullmatch(line):
            settings = read_settings(found["settings"])
            rule = BanditRule(**settings)
            return cls("bandit", bandit=rule, mus=(rule.mu,) if "mu" in settings else MUS)
        match = TEXT.fullmatch(line)
        name = "" if match is None else re.split(r"[\s(]", match["signal"])[0]
        if match is None or name not in SIGNALS:
            raise UsageError(
                f"{unknown('policy family', shown(name or line), [*WORDS, 'bandit', *SIGNALS])}\n"
                f"{EXAMPLES}"
            )
        count = 1 if match["count"] is None else parse_count(match["count"], f"`{name} x N`")
        over: Over = "mean" if match["over"] == "mean" else "max"
        return cls("threshold", Signal.parse(match["signal"]), count, over=over)

    def __str__(self) -> str:
        if self.bandit is not None:
            return str(self.bandit) if len(self.mus) == 1 else f"bandit({self.bandit.without_mu})"
        if self.signal is None:
            return self.kind
        text = f"{self.signal} x {self.count}" if self.count > 1 else str(self.signal)
        return f"{text} mean" if self.over == "mean" else text

    def policy(self, number: float) -> Policy:
        """The member with this threshold, patience, layer or mu."""
        if self.bandit is not None:
            return Policy(replace(self.bandit, mu=float(number)))
        if self.signal is not None:
            comparison: Literal["<", ">"] = ">" if self.signal.rising else "<"
            return Policy(Threshold(self.signal, comparison, float(number), self.count), self.over)
        if self.kind == "patience":
            return Policy(Patience(int(number)))
        return Policy(FixedLayer(int(number)) if self.kind == "layers" else Oracle())
