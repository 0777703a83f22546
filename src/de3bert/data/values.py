"""Checks on the values of the chosen columns; every refusal names the rows."""

from __future__ import annotations

import math
import re

from de3bert.data.frame import Frame, Unreadable
from de3bert.data.label_names import LabelNames, names_by_number
from de3bert.data.labels import INTEGER, label_value
from de3bert.errors import De3Error, UsageError
from de3bert.limits import check_limit
from de3bert.printable import cut_list

__all__ = ["checked_labels", "checked_texts", "sound_text"]

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
    texts = []
    for position, value in enumerate(values):
        try:
            texts.append(sound_text(value, column))
        except De3Error as error:
            place = f"{frame.source}, {frame.places([position])}"
            raise type(error)(f"{place}: {error}") from error
    check_limit("unpacked", sum(map(len, texts)), f'{frame.source}, the texts of "{column}"')
    return texts


def checked_labels(
    frame: Frame, column: str, names: LabelNames | None = None
) -> list[str] | list[int]:
    """The column as all integers or all strings, or an error that names the rows at fault.

    Args:
        names: What integers stand for; those that occur must be among them.
    """
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
    if names is not None:
        _check_named(frame, labels, names)
    elif column in frame.class_names:
        _check_positions(frame, column, labels)
    whole = [label for label in labels if isinstance(label, int)]
    return whole if len(whole) == len(labels) else [str(label) for label in labels]


def sound_text(value: object, column: str) -> str:
    """One value as a text with something in it, or a De3Error that says why it is none."""
    if isinstance(value, Unreadable):
        raise De3Error(f'"{column}" cannot be read ({value.reason}). Repair or remove the row.')
    if _missing(value):
        raise De3Error(f'"{column}" is empty. Fill in the text or remove the row.')
    if isinstance(value, int | float):
        return _digits(value, column)
    if not isinstance(value, str):
        raise UsageError(
            f'"{column}" holds a {type(value).__name__}, not a text. '
            "Name the column of text with --text."
        )
    try:
        check_limit("text", len(value.encode("utf-8")), f'"{column}"')
    except UnicodeEncodeError as error:
        raise De3Error(
            f'"{column}" holds half of a surrogate pair ({error.reason}), which is not '
            "valid Unicode. Repair or remove the row."
        ) from error
    return value


def _digits(value: float, column: str) -> str:
    try:
        return str(value)
    except ValueError as error:  # thousands of digits, which Python does not write out
        raise De3Error(f'"{column}" holds a number, not a text ({error}).') from error


def _missing(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return math.isnan(value)
    # By name, because pandas is not imported here; its missing values are not floats.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


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
            f"is none of the classes 0 to {len(names) - 1} ({cut_list(names)}). Test splits often "
            "hide their labels like this; choose another split."
        )


def _check_named(frame: Frame, labels: list[str | int], names: LabelNames) -> None:
    known = names_by_number(names)
    nameless = sorted({label for label in labels if isinstance(label, int) and label not in known})
    if nameless:
        listed = cut_list(f"{number}={name}" for number, name in known.items())
        raise UsageError(
            f"{frame.source}: the labels {cut_list(nameless)} have no name among those given "
            f"({listed}). Name every number that occurs, or remove its rows."
        )
