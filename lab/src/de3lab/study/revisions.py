"""Methods whose training has changed: what was trained before is shown, and counts for nothing.

A run is named by its settings, and a repaired method may have the same as before. Its revision
tells the two apart: trainings of an older one are withdrawn from ranks, tests, averages and
verdicts until they are trained again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from de3bert.methods import METHODS
from de3lab.documents import RunRecord

__all__ = ["REVISIONS", "Revision", "outdated", "revision_of"]


@dataclass(frozen=True)
class Revision:
    """The newest way a method is trained.

    Attributes:
        number: that of records made by it; what has none is 1.
        reason: what was wrong before, as a part of a sentence.
    """

    number: int
    reason: str


WITHOUT_POOLERS = (
    "its exits read the plain mean of the tokens, without the pooler of its own that each has in "
    "the authors' code"
)
WIDE_RANGE = (
    "its thresholds were drawn from the signals of all exits, though no row leaves at the last one "
    "by a threshold"
)
REVISIONS: Mapping[str, Revision] = {
    "leebert": Revision(
        2,
        "its learned weights collapsed in training: they only fell for the exits whose loss was "
        "large, so that shallow exits hardly learned",
    ),
    "gpfee": Revision(2, WITHOUT_POOLERS),
    "berxit": Revision(2, WITHOUT_POOLERS),
    "cosee": Revision(2, WIDE_RANGE),
    "de-cosee": Revision(2, WIDE_RANGE),
    "consistentee": Revision(
        2,
        "the best epoch of its router was chosen by the accuracy of exits, which a router does not "
        "change, and the router learned at 50 times the authors' rate",
    ),
    "cascadebert": Revision(
        2,
        "its small model was a copy of the backbone's first layers, and rows were judged hard by a "
        "model that had seen them",
    ),
}


def revision_of(training: str) -> int:
    """The revision of a training that is made now; that of its base where exits are fitted."""
    known = REVISIONS.get(METHODS[training].base or training)
    return 1 if known is None else known.number


def outdated(record: RunRecord) -> str | None:
    """Why a record does not count any more; None where it does."""
    if record.revision >= revision_of(record.training):
        return None
    return REVISIONS[METHODS[record.training].base or record.training].reason
