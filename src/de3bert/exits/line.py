"""One line of text from a user or a stored file, and the numbers in it, read strictly."""

from __future__ import annotations

import math
import re
import reprlib

from de3bert.errors import UsageError
from de3bert.printable import printable

__all__ = ["BRIEF", "COUNT", "one_line", "parse_count", "parse_number", "shown"]

BRIEF = 400  # characters; what people write has fewer than 80
MOST = 999_999  # of a count: no model has so many layers
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?|inf)", re.ASCII | re.IGNORECASE)
COUNT = re.compile(r"\d{1,6}", re.ASCII)


def one_line(text: object, what: str, examples: str, longest: int = BRIEF) -> str:
    """The text without spaces around it and with single ones inside; UsageError if it is no line.

    Args:
        what: what it should be, as the start of the sentence.
        examples: the sentence that shows the right form.
    """
    if not isinstance(text, str):
        raise UsageError(f"{what} is one line of text, got {reprlib.repr(text)}. {examples}")
    line = text.strip()
    if len(line) > longest:
        raise UsageError(
            f"{what} is one line of at most {longest} characters, got {len(line)}. {examples}"
        )
    if "\n" in line or printable(line) != line:
        raise UsageError(
            f'{what} is one line without control characters, got "{shown(line)}". {examples}'
        )
    return " ".join(line.split())


def parse_number(text: str) -> float:
    """A number in plain digits, possibly infinite; NaN for everything else."""
    text = text.strip()
    return float(text) if len(text) <= BRIEF and NUMBER.fullmatch(text) else math.nan


def parse_count(text: str, where: str) -> int:
    """A whole number of at least 1, or a UsageError that names where it stood."""
    if not COUNT.fullmatch(text.strip()) or int(text) < 1:
        raise UsageError(
            f'{where} takes a whole number from 1 up (at most {MOST}), got "{shown(text)}".'
        )
    return int(text)


def shown(text: str, most: int = 60) -> str:
    """Foreign text for a message: cut, and harmless on a terminal."""
    cut = text if len(text) <= most else f"{text[:most]}..."
    return printable(cut).replace("\n", "\\n")
