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

__all__ = ["Subject", "data_hash", "grouped", "read_subjects"]

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

        found = load(self.path, threads=self.threads)
        found.task.check_single(self.path, "an analysis", "its tests need independent rows")
        return found

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
            raise UsageError(f"{self.path} needs texts; give them with --data FILE.")
        return self.table

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The options that the model's method was trained with, as far as they are known."""
        if self.is_trace:
            return dict(self.trace.info.get("method_options") or {})
        return dict(self.classifier.info.method_options)

    @cached_property
    def method(self) -> str:
        """The name of the method, or "unknown" where an old trace does not say it."""
        if self.is_trace:
            return str(self.trace.info.get("method", "unknown"))
        return self.classifier.info.method

    @property
    def own_lambda(self) -> float:
        """Lambda of EDR as the model was trained with; 1 where that is not known."""
        return float(self.options.get("lambda", 1.0))

    @property
    def labelled(self) -> Trace:
        """The trace, which must have labels of at least two classes."""
        if self.trace.labels is None:
            raise UsageError(
                f"{self.path} has rows without labels, so nothing can be scored. Give data with a "
                "column of labels (--label NAME), or a trace of such data."
            )
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
        trace = self.labelled
        self.check_distances()
        return trace

    def check_distances(self) -> None:
        """Refuses a trace without distances to prototypes; it needs no labels."""
        if self.trace.distances is None:
            raise UsageError(
                f"{self.path} ({self.method}) has no distances to prototypes, so there is no "
                "distance ratio. Give a model that was trained with prototypes (de3 ...)."
            )


def read_subjects(
    given: Sequence[str],
    table: Table | None,
    *,
    batch_size: int = 32,
    threads: int | None = None,
    progress: bool = False,
    need_rows: bool = True,
) -> list[Subject]:
    """Subjects from `PATH` or `LABEL=PATH`; without a label they are called by their method."""
    found = []
    for text in given:
        label, path = _split(text)
        if need_rows and table is None and not _is_trace(path):
            raise UsageError(f"{path} is a model; give the rows to run it on with --data FILE.")
        subject = Subject(label, path, table, batch_size, threads, progress)
        if not label:
            # Renamed in place: a copy would load the model a second time.
            object.__setattr__(subject, "label", subject.method)
        found.append(subject)
    _check_same_rows(found)
    return found


def grouped(subjects: Sequence[Subject]) -> dict[str, list[Subject]]:
    """Label -> its subjects, both in the order given."""
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.label, []).append(subject)
    return found


def data_hash(trace: Trace) -> str | None:
    """The hash of the file that a trace is of; None where the trace does not say it."""
    data = trace.info.get("data")
    return data.get("sha256") if isinstance(data, Mapping) else None


def _split(text: str) -> tuple[str, str]:
    """`LABEL=PATH`; a path that itself has a `=` and exists is a path."""
    label, equals, path = (part.strip() for part in text.partition("="))
    if equals and not Path(text).exists():
        if label and path:
            return label, path
    elif text.strip():
        return "", text
    raise UsageError(f'A subject is PATH or LABEL=PATH, got "{text}".')


def _is_trace(path: str) -> bool:
    return Path(path).suffix == TRACE or Path(path).is_file()


def _check_same_rows(subjects: Sequence[Subject]) -> None:
    """Subjects that are compared must have been asked about the same rows.

    Models are all asked about the same table; they are checked only beside traces.
    """
    if not any(subject.is_trace for subject in subjects):
        return
    first = subjects[0]
    for other in subjects[1:]:
        hashes = {source for source in (_source(first), _source(other)) if source}
        if len(hashes) > 1 or _count(first) != _count(other) or not _same_labels(first, other):
            raise De3Error(
                f"{first.path} and {other.path} are about different data, so they are not "
                "comparable. Trace all models on the same file."
            )


def _source(subject: Subject) -> str | None:
    """The hash of the data, as far as it is known."""
    if not subject.is_trace:
        return subject.rows.sha256 or None
    return data_hash(subject.trace)


def _count(subject: Subject) -> int:
    return subject.trace.rows if subject.is_trace else len(subject.rows)


def _same_labels(first: Subject, other: Subject) -> bool:
    """Whether the true classes of two traces agree, as far as both have them."""
    if not (first.is_trace and other.is_trace):
        return True
    mine, theirs = first.trace.labels, other.trace.labels
    return mine is None or theirs is None or bool((mine == theirs).all())
