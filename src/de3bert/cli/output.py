"""How verbs speak: results on stdout, notes and progress on stderr, JSON on request."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from de3bert.printable import UNSAFE, printable

__all__ = ["Voice", "brief", "grid", "json_text", "ratio_text", "show_error"]

WIDE = 160
LONGEST = 4000  # characters of a message


class Voice:
    """Prints a verb's result as a table or as JSON, and its notes unless quiet."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        # Without a terminal there is no width to fit: tables and lines stay whole.
        self.out = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
        self.err = Console(stderr=True, highlight=False)
        # The libraries below have progress bars of their own; the verbs draw theirs.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

    def note(self, text: str) -> None:
        if not self.quiet:
            self.err.print(printable(text), style="dim", markup=False)

    def warn(self, text: str) -> None:
        self.err.print(_cut(printable(f"warning: {text}")), style="yellow", markup=False)

    def progress(self, label: str) -> str | None:
        """The label of a progress bar, or None when there should be none."""
        return None if self.quiet else label

    def result(self, document: Any, *shown: Any) -> None:
        """The verb's answer: `document` with --json, else the things to show, in order."""
        if self.as_json:
            print(json_text(document, indent=2))
            return
        for item in shown:
            if isinstance(item, str):
                self.out.print(printable(item), markup=False, soft_wrap=True)
            else:
                self.out.print(item)


def json_text(document: Any, indent: int | None = None) -> str:
    r"""JSON that every reader takes: what is not a number becomes null, dates become text.

    Characters that could steer a terminal are escaped as JSON has it, so they can be read back.
    """
    text = json.dumps(
        _plain(document), indent=indent, ensure_ascii=False, allow_nan=False, default=str
    )
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def show_error(error: object) -> None:
    """The last line of a verb that failed."""
    print(_cut(printable(f"error: {error}")), file=sys.stderr)


def _cut(text: str) -> str:
    """A message that quotes all of a file says no more than its beginning."""
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]} ... ({more} more characters)"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """A plain table; numbers to the right, text to the left."""
    shown = None if title is None else escape(printable(title))
    table = Table(title=shown, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        numeric = all(isinstance(row[index], int | float) for row in rows) and bool(rows)
        table.add_column(
            escape(printable(name)), justify="right" if numeric else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    return table


def brief(policy: str) -> str:
    """The line of a controller lists its whole curve; the ends of it tell enough."""
    begin, along, rest = policy.partition("along=")
    knots = rest.partition(",")[0].split("/")
    if not along or len(knots) < 4:
        return policy
    return f"{begin}{along}{knots[0]}/.../{knots[-1]}{rest[len('/'.join(knots)) :]}"


def ratio_text(value: float, interval: Sequence[float] | None) -> str:
    """A ratio of layers with its interval."""
    if interval is None:
        return f"{value:.2f}"
    low, high = interval
    return f"{value:.2f} (95 % interval {low:.2f} to {high:.2f})"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 100 else f"{value:.0f}"
    # Square brackets are markup to rich, and a class may be called "[red]".
    return "-" if value is None else escape(printable(str(value)))
