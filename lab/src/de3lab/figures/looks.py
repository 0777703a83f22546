"""One colour, dash and marker for every method and rule, in all figures and on all pages.

A method looks alike wherever it is drawn, whatever stands beside it. A rule on one model (entropy,
EDR) looks like the method that is known by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

from de3bert.figures.style import COLOURS

__all__ = ["DASHES", "MARKERS", "Look", "look_of", "looks_of"]

DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (9, 3)),
)  # fmt: skip
MARKERS = "osD^v<>P*"  # the page draws the same, by their numbers
STAR = MARKERS.index("*")


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
    """The look of a method, rule or signal; of one that nobody has named, by its letters."""
    plain = AFTER.sub("", name)
    plain = SAME.get(plain, plain)
    if NUMBERED.fullmatch(plain):
        plain = "fixed depth"
    if plain in LOOKS:
        return LOOKS[plain]
    number = crc32(plain.encode())
    return Look(number % 6, number // 6 % len(DASHES), number % STAR)


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The looks of what stands in one figure; of two that would look alike the later gives way."""
    found: dict[str, Look] = {}
    for name in names:
        look = look_of(name)
        for more in range(1, len(DASHES)):
            if look not in found.values() or look.colour >= 6:
                break
            look = look._replace(dash=(look.dash + 1) % len(DASHES), marker=more % STAR)
        found[name] = look
    return found
