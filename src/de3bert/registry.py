"""Parts register under a short name; asking for an unknown one names the close matches."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from de3bert.errors import UsageError
from de3bert.printable import cut_list, printable

__all__ = ["Registry", "unknown"]

Part = TypeVar("Part")
LONGEST = 80  # characters of a name that are shown
SHOWN = 50  # names that are listed
NAME = re.compile(r"[a-z][a-z0-9_-]*")


class Registry(Generic[Part]):
    """A table from lower-case names to parts of one kind.

    Example:
        >>> POOLINGS: Registry[type] = Registry("pooling")
        >>> @POOLINGS.register("mean")
        ... class Mean: ...
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}

    def add(self, name: str, part: Part) -> Part:
        if not NAME.fullmatch(name):
            raise ValueError(f"{self.kind} names are lower case, got {name!r}")
        if name in self._parts:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._parts[name] = part
        return part

    def register(self, name: str) -> Callable[[Part], Part]:
        return lambda part: self.add(name, part)

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            raise UsageError(unknown(self.kind, name, self._parts))
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        return len(self._parts)


def unknown(kind: str, name: str, known: Iterable[object]) -> str:
    """The message for a name that does not exist, with the nearest names that do."""
    names = sorted(str(item) for item in known)
    asked = name if len(name) <= LONGEST else f"{name[:LONGEST]}..."
    close = difflib.get_close_matches(asked, names, n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    listed = cut_list(names, SHOWN) or "none"
    return f'Unknown {kind} "{printable(asked)}".{hint}\nAvailable: {listed}.'
