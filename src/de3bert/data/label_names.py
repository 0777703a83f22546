"""What the numbers in a label column stand for, when it is said from outside the data."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from de3bert.errors import UsageError

__all__ = ["INTEGER", "LabelNames", "label_names_of", "names_by_number"]

# The names of 0, 1, 2 ... in order, or the name of each number.
LabelNames: TypeAlias = Sequence[str] | Mapping[int, str]

# At most 18 digits, so that the value fits 64 bits; no leading zeros, so that "007" stays a name.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
PAIR = re.compile(rf"(?P<number>{INTEGER.pattern})\s*=(?P<name>.*)", re.DOTALL)
FORM = (
    "Write the names of 0, 1, 2 ... in order, as in --label-names World,Sports,Business, or each "
    "with its number, as in --label-names 1=World,2=Sports"
)


def label_names_of(text: str | None) -> list[str] | dict[int, str] | None:
    """What `--label-names` says: `World,Sports` or `0=World,1=Sports`; None when not given.

    A name with a comma in it goes in double quotes.
    """
    if text is None:
        return None
    try:
        cells = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UsageError(f'Cannot read the names "{text[:60]}": {error}. {FORM}.') from error
    parts = [cell.strip() for cell in cells]
    pairs = [PAIR.fullmatch(part) for part in parts]
    if not parts or not all(parts):
        raise UsageError(f'A name is missing in "{text[:60]}". {FORM}.')
    if all(pair is None for pair in pairs):
        return parts
    found: dict[int, str] = {}
    for part, pair in zip(parts, pairs, strict=True):
        if pair is None or not pair["name"].strip() or int(pair["number"]) in found:
            raise UsageError(f'"{part[:60]}" is not a distinct number with a name. {FORM}.')
        found[int(pair["number"])] = pair["name"].strip()
    return found


def names_by_number(names: LabelNames | Mapping[str, str]) -> dict[int, str]:
    """The name of each number, by rising numbers; UsageError where a key is no number."""
    pairs: list[tuple[int | str, str]] = list(
        names.items() if isinstance(names, Mapping) else enumerate(names)
    )
    strange = [key for key, _ in pairs if not INTEGER.fullmatch(str(key))]
    if strange:
        raise UsageError(f"Label names are keyed by whole numbers, got {strange[0]!r}. {FORM}.")
    return dict(sorted((int(key), str(name)) for key, name in pairs))
