"""Answers to a stream of rows, printed as they come: JSON lines, or one JSON document."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from de3bert.cli.output import Voice, json_text
from de3bert.errors import De3Error
from de3bert.progress import Ticker

if TYPE_CHECKING:
    from de3bert.data.stream import Row
    from de3bert.runtime.streaming import StreamCounts

__all__ = ["answer"]

PATIENCE = 1.0  # seconds that standard input has to show what is wrong with it, before loading


def answer(
    voice: Voice,
    rows: Iterator[Row],
    load: Callable[[], Any],
    kind: type,
    *,
    point: str | None,
    policy: str | None,
    batch_size: int,
    strict: bool,
    waits: bool,
    cut: str,
) -> None:
    """Prints an answer to every row, and at the end what was wrong.

    Args:
        load: loads the model; called when the source is known to be valid.
        kind: the dataclass of an answer.
        waits: rows may be long in coming; then the model is loaded meanwhile.
        cut: a warning about rows that were too long, with the `{count}` of them.
    """
    from de3bert.runtime.streaming import Ahead, StreamCounts, answered

    tally = StreamCounts()
    with Ahead(rows) as ahead:
        ahead.check(PATIENCE if waits else None)
        model = load()
        windows = answered(
            model,
            ahead,
            [each.name for each in fields(kind)],
            tally,
            policy=model.policy(point, policy),
            batch_size=batch_size,
            strict=strict,
        )
        try:
            _write(_watched(windows, tally, voice), voice.as_json)
        except De3Error:
            if tally.faults:
                voice.warn(str(tally))
            raise
        finally:
            if tally.cut:
                limit = model.info.max_length
                voice.warn(cut.format(count=f"{tally.cut} of {tally.rows}", limit=limit))
    if tally.faults:
        raise De3Error(str(tally))


def _watched(
    windows: Iterable[list[dict[str, Any]]], tally: StreamCounts, voice: Voice
) -> Iterator[list[dict[str, Any]]]:
    """Reports progress now and then when the answers are not shown on a terminal."""
    ticker = None if voice.quiet or sys.stdout.isatty() else Ticker("predicting", unit="rows")
    for window in windows:
        yield window
        if ticker is not None:
            ticker.update(tally.rows)
    if ticker is not None:
        ticker.finish(tally.rows)


def _write(windows: Iterable[list[dict[str, Any]]], as_document: bool) -> None:
    """Each window at once; of a document the answers until an error are a whole one too."""
    before = "["
    try:
        for window in windows:
            for row in window:
                line = json_text(row)
                sys.stdout.write(f"{before}\n{line}" if as_document else f"{line}\n")
                before = ","
            sys.stdout.flush()
    except De3Error:
        if as_document and before == ",":
            print("\n]", flush=True)
        raise
    if as_document:
        print("\n]", flush=True)
