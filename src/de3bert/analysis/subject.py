"""What is analysed: a model folder, a bundle, a hub id or a trace, under a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.exits.trace import Trace

if TYPE_CHECKING:
    from de3bert.runtime.classifier import Classifier

__all__ = ["Subject", "grouped", "read_subjects"]

TRACE = ".trace"


@dataclass(frozen=True)
class Subject:
    """A model or a trace, loaded when it is asked for.

    Attributes:
        label: what it is called in tables and legends. Several with one label are runs of one kind
            with different seeds.
        path: as the user gave it.
        table: the rows that a model is asked about; None where only a trace is there.
    """

    label: str
    path: str
    table: Table | None = None
    batch_size: int = 32
    threads: int | None = None
    progress: bool = False

    @property
    def is_trace(self) -> bool:
        return _is_trace(self.path)

    @cached_property
    def classifier(self) -> Classifier:
        """The loaded model; UsageError for a trace."""
        if self.is_trace:
            raise UsageError(f"{self.path} is a trace; this needs the model. Give its folder.")
        from de3bert.runtime.load import load

        return load(self.path, threads=self.threads)

    @cached_property
    def trace(self) -> Trace:
        """The trace itself, or that of the model on the rows."""
        if self.is_trace:
            return Trace.load(self.path)
        from de3bert.runtime.evaluate import trace_table

        label = f"tracing {self.label}" if self.progress else None
        return trace_table(self.classifier, self.rows, batch_size=self.batch_size, progress=label)

    @property
    def rows(self) -> Table:
        """The rows of text; UsageError where none were given."""
        if self.table is None:
            raise UsageError(f"{self.path} is to be asked about texts; give them with --data FILE.")
        return self.table

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The options that the model's method was trained with, as far as they are known."""
        if self.is_trace:
            return dict(self.trace.info.get("method_options") or {})
        return dict(self.classifier.config.method_options)

    @cached_property
    def method(self) -> str:
        """The name of the method, or "unknown" where an old trace does not say it."""
        if self.is_trace:
            return str(self.trace.info.get("method", "unknown"))
        return self.classifier.config.method

    @property
    def labelled(self) -> Trace:
        """The trace, which must have labels of at least two classes."""
        seen = set(self.trace.known_labels.tolist())
        if len(seen) < 2:
            name = self.trace.label_names[seen.pop()]
            raise UsageError(
                f"All {self.trace.rows} rows of {self.path} are of one class ({name}); an analysis "
                "needs rows of at least two."
            )
        return self.trace

    @property
    def with_distances(self) -> Trace:
        """The trace, which must have labels and distances to prototypes."""
        if self.labelled.distances is None:
            raise UsageError(
                f"{self.path} ({self.method}) has no distances to prototypes, so there is no "
                "distance ratio. Give a model that was trained with prototypes (de3 ...)."
            )
        return self.trace


def read_subjects(
    given: Sequence[str],
    table: Table | None,
    *,
    batch_size: int = 32,
    threads: int | None = None,
    progress: bool = False,
) -> list[Subject]:
    """Subjects from `PATH` or `LABEL=PATH`; without a label they are called by their method."""
    found = []
    for text in given:
        label, path = _split(text)
        if not _is_trace(path) and table is None:
            raise UsageError(f"{path} is a model; give the rows to ask it about with --data FILE.")
        subject = Subject(label, path, table, batch_size, threads, progress)
        if not label:
            subject = Subject(subject.method, path, table, batch_size, threads, progress)
        found.append(subject)
    _check_same_rows(found)
    return found


def grouped(subjects: Sequence[Subject]) -> dict[str, list[Subject]]:
    """Label -> its subjects, both in the order given."""
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.label, []).append(subject)
    return found


def _split(text: str) -> tuple[str, str]:
    """`LABEL=PATH`; a path that itself has a `=` and exists is a path."""
    label, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return "", text
    if not label.strip() or not path:
        raise UsageError(f'A subject is PATH or LABEL=PATH, got "{text}".')
    return label.strip(), path


def _is_trace(path: str) -> bool:
    return Path(path).suffix == TRACE or Path(path).is_file()


def _check_same_rows(subjects: Sequence[Subject]) -> None:
    """Traces that are compared must be of the same rows."""
    traces = [subject for subject in subjects if subject.is_trace]
    for subject in traces[1:]:
        first, other = _data(traces[0]), _data(subject)
        if first != other:
            raise De3Error(
                f"{traces[0].path} and {subject.path} are traces of different data, so they do not "
                "compare. Trace all models on the same file."
            )


def _data(subject: Subject) -> tuple[Any, int]:
    return subject.trace.info.get("data", {}).get("sha256"), subject.trace.rows
