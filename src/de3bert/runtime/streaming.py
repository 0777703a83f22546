"""Answers to a stream of rows: as soon as they come, in their order, with little held at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from de3bert.data.stream import Row
from de3bert.errors import De3Error

__all__ = ["Ahead", "StreamCounts", "answered"]

FIRST = 16  # rows of the first window: answers come early, and something is seen to be wrong early
WINDOW = 8  # batches of the others, so that rows of similar length can share one
HELD_ROWS, HELD_SIZE = 4096, 16 << 20  # rows and characters that are read ahead
WINDOW_SIZE = 8 << 20
PARTING = 0.5  # seconds for a reader to end by itself
SHOWN = 5


class Model(Protocol):
    """A classifier of any task."""

    def predict(self, rows: Any, point: None = None, *, policy: Any, batch_size: int) -> Any:
        """One answer per row."""


@dataclass
class StreamCounts:
    """What became of the rows so far."""

    rows: int = 0
    cut: int = 0
    faults: int = 0
    places: list[str] = field(default_factory=list)  # of the first faults

    def refuse(self, row: Row) -> None:
        self.faults += 1
        if len(self.places) < SHOWN:
            self.places.append(f"{row.unit} {row.number}")

    def __str__(self) -> str:
        more = " ..." if self.faults > len(self.places) else ""
        return (
            f"{self.faults} of {self.rows} rows could not be answered "
            f"({', '.join(self.places)}{more}); their lines give the reason under `error`."
        )


class Ahead:
    """Rows that a thread of its own reads ahead, up to some thousand.

    The consumer gets what is there and waits only when there is nothing: input that pauses is
    answered in its pauses, a fast file fills whole windows.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self._held: deque[Row] = deque()
        self._size = 0
        self._error: BaseException | None = None
        self._ended = self._closed = False
        self._changed = threading.Condition()
        # A daemon: one that waits for input that never comes must not keep the program alive.
        self._thread = threading.Thread(target=self._read, name="reading ahead", daemon=True)

    def __enter__(self) -> Ahead:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(PARTING)

    def check(self, seconds: float | None) -> None:
        """Raises what is wrong with the source as a whole, if that shows within this time."""
        with self._changed:
            self._changed.wait_for(lambda: self._held or self._ended, seconds)
            if not self._held and self._error is not None:
                raise self._error

    def take(self, most: int) -> list[Row]:
        """The next rows, at least one and up to `most`; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._held or self._ended)
            if not self._held and self._error is not None:
                raise self._error
            taken: list[Row] = []
            size = 0
            while self._held and len(taken) < most and size < WINDOW_SIZE:
                taken.append(self._held.popleft())
                size += taken[-1].size
            self._size -= size
            self._changed.notify_all()
            return taken

    def _read(self) -> None:
        try:
            for row in self._rows:
                if not self._keep(row):
                    return
        except BaseException as error:  # handed to whoever takes
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _keep(self, row: Row) -> bool:
        """Waits for space; False when no more rows are wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room())
            self._held.append(row)
            self._size += row.size
            self._changed.notify_all()
            return not self._closed

    def _has_room(self) -> bool:
        return len(self._held) < HELD_ROWS and self._size < HELD_SIZE


def answered(
    model: Model,
    rows: Ahead,
    own: Iterable[str],
    tally: StreamCounts,
    *,
    policy: Any,
    batch_size: int = 32,
    strict: bool = False,
) -> Iterator[list[dict[str, Any]]]:
    """Windows of answers in the order of the rows: each row's own columns, then the answer.

    A row that cannot be answered has `error` and its position instead; with `strict` it ends the
    stream. A column with a name of ours is kept under `input_NAME`.

    Args:
        own: the names that answers have.
        tally: counts along.
    """
    names = {*own, "error"}
    most = min(FIRST, batch_size)
    while window := rows.take(most):
        most = WINDOW * batch_size
        bad = next((at for at, row in enumerate(window) if row.fault), None) if strict else None
        given = [row.given for row in window[:bad] if not row.fault]
        answers = model.predict(given, policy=policy, batch_size=batch_size) if given else []
        tally.cut += sum(answer.truncated for answer in answers)
        tally.rows += len(window[:bad])
        left = iter(answers)
        yield [_document(row, names, left, tally) for row in window[:bad]]
        if bad is not None:
            row = window[bad]
            raise De3Error(f"{row.unit} {row.number}: {row.fault}")


def _document(
    row: Row, names: set[str], answers: Iterator[Any], tally: StreamCounts
) -> dict[str, Any]:
    if not row.fault:
        return {**_renamed(row.columns, names), **next(answers).to_json()}
    tally.refuse(row)
    columns = _renamed(row.columns, names | {row.unit})
    return {"error": row.fault, row.unit: row.number, **columns}


def _renamed(columns: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {f"input_{name}" if name in names else name: v for name, v in columns.items()}
