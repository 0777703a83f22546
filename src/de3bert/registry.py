"""Parts register under a short name; asking for an unknown one names the close matches."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Generic, TypeVar

from de3bert import plugins
from de3bert.errors import UsageError
from de3bert.printable import cut_list, printable

__all__ = ["Registry", "unknown"]

Part = TypeVar("Part")
LONGEST = 80  # characters of a name that are shown
SHOWN = 50  # names that are listed
OURS = "de3bert"
PART_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class Registry(Generic[Part]):
    """A table from lower-case names to parts of one kind.

    A name that is not built in, and the list of all names, first bring in what installed plugins
    add (`de3bert.plugins`).

    Example:
        >>> POOLINGS: Registry[type] = Registry("pooling")
        >>> @POOLINGS.register("mean")
        ... class Mean: ...
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}
        self._origins: dict[str, str] = {}

    def add(self, name: str, part: Part) -> Part:
        if not PART_NAME.fullmatch(name):
            raise ValueError(f"{self.kind} names are lower case, got {name!r}")
        if name in self._parts:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._parts[name] = part
        self._origins[name] = _caller()
        return part

    def register(self, name: str) -> Callable[[Part], Part]:
        return lambda part: self.add(name, part)

    def origin(self, name: str) -> str | None:
        """The module outside this package that registered a part; None for what is built in."""
        module = self._origins.get(name, OURS)
        return None if module.split(".")[0] == OURS else module

    def __getitem__(self, name: str) -> Part:
        if name not in self:
            raise UsageError(unknown(self.kind, name, self._parts) + _not_imported())
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._parts:
            plugins.load_installed()
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        plugins.load_installed()
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        plugins.load_installed()
        return len(self._parts)


def _caller() -> str:
    """The name of the module that registers a part."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return OURS if frame is None else str(frame.f_globals.get("__name__", OURS))


def _not_imported() -> str:
    """What plugins could not be imported: the unknown name may be theirs."""
    return "".join(
        f"\nThe plugin {printable(module)} could not be imported: {reason}."
        for module, reason in plugins.failures().items()
    )


def unknown(kind: str, name: str, known: Iterable[object]) -> str:
    """The message for a name that does not exist, with the nearest names that do."""
    names = sorted(str(item) for item in known)
    asked = name if len(name) <= LONGEST else f"{name[:LONGEST]}..."
    close = difflib.get_close_matches(asked, names, n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    listed = cut_list(names, SHOWN) or "none"
    return f'Unknown {kind} "{printable(asked)}".{hint}\nAvailable: {listed}.'
