"""Trainings of several studies in the order of their value, for cores that would be idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from de3bert.errors import UsageError
from de3bert.files import read_toml
from de3lab.study.collect import kept_record
from de3lab.study.execute import Study
from de3lab.study.plan import Job, selected
from de3lab.study.report import write_report
from de3lab.study.run import run_study
from de3lab.study.spec import load_study

__all__ = ["Entry", "Standing", "load_queue", "run_queue", "standings"]


class Entry(BaseModel):
    """Some trainings of a study.

    Attributes:
        study: the study's file, beside the queue's.
        only: filters `task/method/seed`, as `de3 compare --only` takes them; none: all of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str
    only: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{Path(self.study).stem}: {', '.join(self.only) or 'all'}"


class _Queue(BaseModel):
    model_config = ConfigDict(extra="forbid")

    run: tuple[Entry, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Standing:
    """How far an entry is: trainings whose record is kept, of all."""

    entry: Entry
    done: int
    of: int


def load_queue(path: Path) -> tuple[Entry, ...]:
    """Reads and checks a queue file; UsageError names every wrong setting."""
    settings = read_toml(path, "The queue file")
    try:
        return _Queue.model_validate(settings).run
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc'])) or 'queue'}: {e['msg']}" for e in error.errors()]
        raise UsageError(f"The queue file {path} is not valid:\n" + "\n".join(lines)) from error


def _works(
    path: Path, results: Path, runs: Path, command: str
) -> Iterator[tuple[Entry, Study, Path]]:
    """Each entry with its study, and where the study's report is. All are read before the first."""
    entries = load_queue(path)
    specs = {entry.study: load_study(path.parent / entry.study) for entry in entries}
    made = []
    for entry in entries:
        study = Study(specs[entry.study], runs, command)
        selected(study.jobs, entry.only)  # a filter that names nothing is an error now, not later
        made.append((entry, study, results / Path(entry.study).stem))
    yield from made


def _left(entry: Entry, study: Study, place: Path) -> tuple[list[Job], list[Job]]:
    jobs = selected(study.jobs, entry.only)
    return jobs, [job for job in jobs if kept_record(place, job) is None]


def standings(path: Path, results: Path, runs: Path) -> list[Standing]:
    """How far each entry is; reads neither data nor backbones."""
    found = []
    for entry, study, place in _works(path, results, runs, ""):
        jobs, left = _left(entry, study, place)
        found.append(Standing(entry, len(jobs) - len(left), len(jobs)))
    return found


def run_queue(
    path: Path,
    results: Path,
    runs: Path,
    *,
    command: str = "",
    progress: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Works through the queue from its first training that has no record; each entry is reported.

    Started again it goes on where it was stopped, in the middle of a training too.

    Returns:
        Label -> reason of the trainings that failed; the queue goes on without them.
    """
    failed: dict[str, str] = {}
    for entry, study, place in _works(path, results, runs, command):
        jobs, left = _left(entry, study, place)
        if not left:
            continue
        note(f"{entry.label}: {len(left)} of {len(jobs)} left")
        failed |= run_study(
            study, place, only=entry.only, progress=progress, again=False, note=note
        )
        if len(_left(entry, study, place)[1]) < len(left):
            write_report(study, place, exact=False, note=note)
    return failed
