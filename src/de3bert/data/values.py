"""Checks on the values of the chosen columns; every refusal names the rows."""

from __future__ import annotations

import math
import re

from de3bert.data.frame import Frame
from de3bert.data.labels import INTEGER, label_value
from de3bert.errors import De3Error, UsageError

__all__ = ["checked_labels", "checked_texts"]

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")


def checked_texts(frame: Frame, column: str) -> list[str]:
    """The column as strings, or an error that names the rows without a text."""
    values = frame.columns[column]
    empty = [position for position, value in enumerate(values) if _missing(value)]
    if empty:
        raise De3Error(
            f'{frame.source}: {len(empty)} of {len(values)} rows have an empty "{column}" '
            f"({frame.places(empty)}). Fill in these texts or remove the rows."
        )
    return [_text(value, frame, column, position) for position, value in enumerate(values)]


def checked_labels(frame: Frame, column: str) -> list[str] | list[int]:
    """The column as all integers or all strings, or an error that names the rows at fault."""
    values = frame.columns[column]
    empty = [position for position, value in enumerate(values) if _missing(value)]
    if empty:
        raise De3Error(
            f'{frame.source}: {len(empty)} of {len(values)} rows have no label in "{column}" '
            f"({frame.places(empty)}). Label these rows or remove them."
        )
    if frame.untyped:
        values = _numbers_recognised([value.strip() for value in values])
    labels = [
        label_value(value, f"{frame.source}, {frame.places([position])}")
        for position, value in enumerate(values)
    ]
    if column in frame.class_names:
        _check_positions(frame, column, labels)
    whole = [label for label in labels if isinstance(label, int)]
    return whole if len(whole) == len(labels) else [str(label) for label in labels]


def _missing(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return math.isnan(value)
    # By name, because pandas is not imported here; its missing values are not floats.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _text(value: object, frame: Frame, column: str, position: int) -> str:
    place = f"{frame.source}, {frame.places([position])}"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise UsageError(
            f'{place}: "{column}" holds a {type(value).__name__}, not a text. '
            "Name the column of text with --text."
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise De3Error(
            f'{place}: "{column}" holds half of a surrogate pair ({error.reason}), which is not '
            "valid Unicode. Repair or remove the row."
        ) from error
    return value


def _numbers_recognised(values: list[str]) -> list[str] | list[int] | list[float]:
    """CSV has no types: a label column of nothing but numbers is a column of numbers."""
    if all(INTEGER.fullmatch(value) for value in values):
        return [int(value) for value in values]
    # "007" is a name and not the number 7, so numbers with a point must be among them.
    if all(NUMBER.fullmatch(value) for value in values) and any("." in value for value in values):
        return [float(value) for value in values]
    return values


def _check_positions(frame: Frame, column: str, labels: list[str | int]) -> None:
    names = frame.class_names[column]
    outside = [
        position
        for position, label in enumerate(labels)
        if isinstance(label, int) and not 0 <= label < len(names)
    ]
    if outside:
        raise UsageError(
            f"{frame.source}: label {labels[outside[0]]} in {len(outside)} of {len(labels)} rows "
            f"is none of the classes 0 to {len(names) - 1} ({', '.join(names)}). Test splits often "
            "hide their labels like this; choose another split."
        )
