"""Are the rows good enough to calibrate on? What is refused, and what is said with a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError
from de3bert.exits.points import OperatingPoint
from de3bert.printable import cut_list

__all__ = ["MINIMUM_ROWS", "check_rows", "doubts", "with_warnings"]

# At 30 rows the exact 95 % interval of a score of 0.9 goes from 0.73 to 0.98: the point chosen may
# as well lose a fifth of the answers. With fewer rows a threshold is not measured but guessed.
MINIMUM_ROWS = 30
WIDE = 0.1  # width of an interval from which on it is mentioned

Integers = NDArray[np.int64]


def check_rows(
    labels: Integers,
    label_names: Sequence[str],
    *,
    force: bool = False,
    rows: int | None = None,
    unit: str = "rows",
) -> list[str]:
    """Refuses rows that no point can be calibrated on; with `force` gives the reasons instead.

    Refused are fewer than 30 rows, where the exact 95 % interval of a score of 0.9 is 0.24 wide,
    and rows without some class of the model: nothing is known then about where its texts leave.

    Args:
        labels: the class of every row, (rows,).
        rows: how many independent rows that is, where it is not the number of labels.
        unit: what they are called.
    """
    count = len(labels) if rows is None else rows
    reasons = []
    if count < MINIMUM_ROWS:
        reasons.append(
            f"{count} {unit} are too few to calibrate on: at least {MINIMUM_ROWS} are needed (a "
            "score of 0.9 then has a 95 % interval of 0.73 to 0.98), and hundreds are better"
        )
    seen = set(np.unique(labels).tolist())
    absent = [name for number, name in enumerate(label_names) if number not in seen]
    if absent:
        reasons.append(
            f"the {unit} have none of the class{'es' * (len(absent) > 1)} {cut_list(absent)} "
            f"({len(absent)} of the model's {len(label_names)}): where such texts exit cannot be "
            "measured"
        )
    if reasons and not force:
        raise UsageError(
            f"{_sentence('; '.join(reasons))}. Give other {unit}, or pass --force (force=True) to "
            "proceed anyway."
        )
    return reasons


def doubts(measured: Mapping[str, Any], labels: Integers, answers: Integers) -> list[str]:
    """What must be known in addition to a point's measurements.

    Args:
        measured: of the point.
        labels: the class of every row, (rows,).
        answers: what the full model says, (rows,).
    """
    found = []
    low, high = measured["score_interval"]
    rows, unit = measured["rows"], "rows"
    if "sentences" in measured:
        rows, unit = measured["sentences"], "sentences"
    if high - low > WIDE:
        found.append(
            f"the 95 % interval of the {measured['metric']} is {high - low:.2f} wide ({low:.3f} to "
            f"{high:.3f}) with {rows} {unit}; about {4 * rows} would halve it"
        )
    if measured["metric"] == "agreement":  # the answers are the labels
        return found
    right = float((labels == answers).mean())
    most_frequent = float(np.bincount(labels).max() / len(labels))
    if right <= most_frequent:
        found.append(
            f"the full model is right in {right:.1%} of these {unit}, no more often than by always "
            f"predicting the most frequent class ({most_frequent:.1%}): do they belong to the "
            "model's task?"
        )
    return found


def with_warnings(point: OperatingPoint, warnings: Sequence[str]) -> OperatingPoint:
    """The point that keeps these warnings; itself when there are none."""
    if not warnings:
        return point
    return replace(point, measured={**point.measured, "warnings": list(warnings)})


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
