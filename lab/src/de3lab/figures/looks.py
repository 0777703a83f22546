"""One colour, dash and marker for every method and rule, in all figures and on all pages.

A method looks alike wherever it is drawn, whatever stands beside it. A rule on one model (entropy,
EDR) looks like the method that is known by it. What is not in the table (a label of one's own, the
method of a plugin) takes what is left in a figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from de3bert.figures.style import COLOURS

__all__ = ["DASHES", "MARKERS", "Look", "look_of", "looks_of"]

DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (9, 3)),
)  # fmt: skip
MARKERS = "osD^v<>P*"  # the page draws the same, by their numbers
STAR = MARKERS.index("*")
VIVID = range(6)  # colours of lines; black and grey are for points


class Look(NamedTuple):
    """Numbers of a colour (`COLOURS`), a dash (`DASHES`) and a marker (`MARKERS`)."""

    colour: int
    dash: int
    marker: int

    def plotted(self) -> dict[str, Any]:
        """As matplotlib takes it."""
        return {
            "color": COLOURS[self.colour],
            "linestyle": DASHES[self.dash],
            "marker": MARKERS[self.marker],
        }


LOOKS: Mapping[str, Look] = {
    "de3": Look(0, 0, 0),
    "joint-entropy": Look(1, 0, 1),
    "pabee": Look(2, 0, 2),
    "cosee": Look(3, 0, 3),
    "berxit": Look(4, 0, 4),
    "ceebert": Look(5, 0, 5),
    "full": Look(6, 0, 2),
    "fixed depth": Look(7, 0, 1),
    "oracle": Look(6, 0, STAR),
    "de3-fitted": Look(0, 1, 6),
    "joint-entropy-calibrated": Look(1, 1, 7),
    "pcee": Look(2, 1, 0),
    "de-cosee": Look(3, 1, 1),
    "deebert": Look(4, 1, 2),
    "gpfee": Look(5, 1, 3),
    "distance ratio": Look(6, 1, 4),
    "highest probability": Look(7, 1, 5),
    "hashee": Look(0, 2, 1),
    "mixed": Look(1, 2, 5),
    "leebert": Look(2, 2, 4),
    "righttool": Look(3, 2, 6),
    "fastbert": Look(4, 2, 7),
    "consistentee": Look(5, 2, 0),
    "distilbert": Look(6, 2, 0),
    "pkd": Look(7, 2, 3),
    "de3 adapted": Look(0, 3, 7),
    "de3-v3": Look(1, 3, 6),
    "cascadebert": Look(2, 3, 5),
    "cascade-truncated": Look(2, 5, 6),
    "de3-no-pn-no-dar": Look(3, 3, 4),
    "de3-no-pn": Look(4, 3, 3),
    "de3-v2": Look(5, 3, 2),
    "pd": Look(6, 3, 1),
    "theseus": Look(7, 3, 0),
    "joint-entropy+fitted": Look(1, 4, 3),
    "full+attached": Look(2, 4, 0),
    "mixed+fitted": Look(3, 4, 2),
    "joint-entropy+attached": Look(1, 5, 7),
    "mixed+attached": Look(3, 5, 0),
}
SAME = {  # what figures call it -> what it is
    "EDR": "de3",
    "entropy": "joint-entropy",
    "patience": "pabee",
    "energy": "cosee",
    "router's certainty": "berxit",
    "bandit": "ceebert",
    "entropy, 2 in a row": "pcee",
    "full model": "full",
    "full+fitted": "de3-fitted",
    "w/o PN": "de3-no-pn",
    "w/o PN w/o DAR": "de3-no-pn-no-dar",
    "w/o DAR": "de3-no-pn-no-dar",
    "v2": "de3-v2",
    "v3": "de3-v3",
}
NUMBERED = re.compile(r"layers-\d+")
AFTER = re.compile(r" \((?:λ = [^)]*|\d+ runs)\)$")  # what a label may say behind its name


def look_of(name: str) -> Look:
    """The look of a method, rule or signal of the table; KeyError for others."""
    plain = AFTER.sub("", name)
    plain = SAME.get(plain, plain)
    return LOOKS["fixed depth" if NUMBERED.fullmatch(plain) else plain]


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The looks of all that stands in one figure.

    Two of one method (EDR with two weights) differ in their dashes. What is not in the table has
    the first colour that is left.
    """
    every = list(dict.fromkeys(names))
    found: dict[str, Look] = {}
    for name in every:
        try:
            look = look_of(name)
        except KeyError:
            continue
        found[name] = _apart(look, found.values())
    for name in (each for each in every if each not in found):
        found[name] = _left(found.values())
    return {name: found[name] for name in every}


def _apart(look: Look, taken: Iterable[Look]) -> Look:
    """The look, or the same colour with the next dash that is free; points may share theirs."""
    lines = {_drawn(each) for each in taken}
    for _ in DASHES:
        if look.colour not in VIVID or _drawn(look) not in lines:
            break
        dash, marker = (look.dash + 1) % len(DASHES), (look.marker + 1) % STAR
        look = look._replace(dash=dash, marker=marker)
    return look


def _left(taken: Iterable[Look]) -> Look:
    """A colour that no other has, or a dash of it that no other has."""
    seen = list(taken)
    lines = {_drawn(look) for look in seen}
    pairs = [(colour, dash) for dash in range(len(DASHES)) for colour in VIVID]
    colours = {look.colour for look in seen}
    free = [pair for pair in pairs if pair[0] not in colours] or [
        p for p in pairs if p not in lines
    ]
    colour, dash = (free or pairs)[0]
    return Look(colour, dash, len(seen) % STAR)


def _drawn(look: Look) -> tuple[int, int]:
    return look.colour, look.dash
