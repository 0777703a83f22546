"""Text from outside as it may be shown: nothing in it is a command to the terminal."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable

__all__ = ["UNSAFE", "cut_list", "kind_of", "printable", "shown"]

# Control characters but newline and tab; line and paragraph separators; what turns the direction of
# writing round, by which a line can be made to read as another one; half surrogates, which no
# stream can encode.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
SHOWN = 10
SHORT = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = 60
SHORT.maxlevel = 2


def printable(text: str) -> str:
    r"""The text with what could steer a terminal written out: ESC becomes \x1b."""
    return UNSAFE.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def shown(value: object) -> str:
    """A value as messages show it: short, and nothing in it steers a terminal."""
    return printable(SHORT.repr(value))


def kind_of(value: object) -> str:
    """Its type, as messages name it: `an int`, `a dict`."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def cut_list(names: Iterable[object], shown: int = SHOWN) -> str:
    """Names with commas; of a long list the first few and how many more there are."""
    listed = [str(name) for name in names]
    if len(listed) <= shown:
        return ", ".join(listed)
    return f"{', '.join(listed[:shown])} and {len(listed) - shown} more"
