"""How far a long job is: a bar on a terminal, elsewhere a line every so often. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

__all__ = ["EVERY", "Ticker", "on_terminal", "track"]

Item = TypeVar("Item")
EVERY = 15.0  # seconds between two lines where there is no terminal


def on_terminal() -> bool:
    """Whether a bar can be drawn on stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


class Ticker:
    """Prints `label: done of total, 40 s` on stderr, at most every `EVERY` seconds.

    Short jobs say nothing. One that has said something also says that it is done.
    """

    def __init__(self, label: str, total: int | None = None, unit: str = "") -> None:
        self.label, self.total, self.unit = label, total, unit
        self.start = self.last = time.monotonic()
        self.spoke = False

    def update(self, done: int, note: str = "") -> None:
        """Says how far it is, when it is time to."""
        if time.monotonic() - self.last >= EVERY:
            self.say(done, note)

    def finish(self, done: int, note: str = "") -> None:
        if self.spoke:
            self.say(done, note)

    def say(self, done: int, note: str = "") -> None:
        self.last, self.spoke = time.monotonic(), True
        of = "" if self.total is None else f" of {self.total}"
        unit = f" {self.unit}" if self.unit else ""
        line = f"{self.label}: {done}{of}{unit}, {self.last - self.start:.0f} s"
        print(f"{line}  {note}".rstrip(), file=sys.stderr, flush=True)


def track(items: Sequence[Item], label: str | None) -> Iterable[Item]:
    """The items one by one, with progress under `label`; None for none."""
    if label is None:
        return items
    if on_terminal():
        from rich.console import Console
        from rich.progress import track as draw_bar

        return draw_bar(items, label, console=Console(stderr=True))
    return _ticked(items, Ticker(label, len(items)))


def _ticked(items: Sequence[Item], ticker: Ticker) -> Iterator[Item]:
    for done, item in enumerate(items):
        ticker.update(done)
        yield item
    ticker.finish(len(items))
