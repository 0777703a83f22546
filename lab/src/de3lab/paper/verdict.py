"""What became of a finding of the paper here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from de3lab.paper.items import ITEMS
from de3lab.paper.judging import Holds, Judged
from de3lab.paper.stored import Stored

__all__ = ["Finding", "Verdict", "unmeasured", "verdict"]


@dataclass(frozen=True)
class Verdict:
    """A finding judged.

    Attributes:
        holds: yes, no, not significant or not measured.
        statement: what was found here, in numbers.
        test: which test decided, over how many runs, and its p-value or interval.
        numbers: the same for a program.
    """

    holds: Holds
    statement: str
    test: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """Something the paper says, and how it is judged here.

    Attributes:
        name: a short one, for programs.
        claim: what the paper says, in our words.
        items: the tables and figures it is read off, the first is the one that measures it.
    """

    name: str
    claim: str
    items: tuple[str, ...]
    judge: Callable[[Stored], Verdict]

    @property
    def references(self) -> str:
        return ", ".join(ITEMS[name].reference for name in self.items)


def verdict(judged: Judged, statement: str) -> Verdict:
    return Verdict(judged.holds, statement, judged.test, judged.numbers)


def unmeasured(item: str) -> Verdict:
    """Nothing is stored yet."""
    return Verdict("not measured", f"`{ITEMS[item].command}` measures it.", "", {"n": 0})
