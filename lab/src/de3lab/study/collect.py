"""Which finished runs a report is made of: exact ones by content, or stored records by settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error
from de3lab.study.execute import Study
from de3lab.study.plan import Job
from de3lab.study.record import RUN, read_record, rescored, scored_as, write_record

__all__ = ["collect", "keep_record"]

Record = Mapping[str, Any]


def keep_record(place: Path, record: Record) -> None:
    """Copies a record to the report; one of the same run with other settings goes."""
    folder = place / "runs"
    for path in folder.glob("*.json"):
        if path.stem != record["key"] and _identity(read_record(path)) == _identity(record):
            path.unlink()
    write_record(folder / f"{record['key']}.json", record)


def collect(
    study: Study,
    place: Path,
    *,
    exact: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> list[Record]:
    """The records of all finished runs of a study.

    Args:
        exact: data and backbone must be there and have the content that the run was made from.
            Otherwise neither is read, and a run counts when task, method, seed and all settings are
            the study's: records in the report first, then the newest among the runs. One that was
            scored by other speeds, metrics or methods is scored anew from its traces.
    """
    if exact:
        known = (study.stored(job) for job in study.jobs)
        found: list[Record] = [record for record in known if record is not None]
        for record in found:
            keep_record(place, record)
        return found
    return _by_settings(study, place, note)


def _by_settings(study: Study, place: Path, note: Callable[[str], None]) -> list[Record]:
    kept = _read((place / "runs").glob("*.json"))
    stored = _read(study.runs.glob(f"*/{RUN}"))
    found = []
    for job in study.jobs:
        record = _matching(kept, job) or _matching(stored, job)
        if record is not None:
            record = _as_asked(study, job, record, note)
        if record is not None:
            keep_record(place, record)
            found.append(record)
    return found


def _as_asked(study: Study, job: Job, record: Record, note: Callable[[str], None]) -> Record | None:
    if record["scored_as"] == scored_as(job):
        return record
    folder = study.runs / record["key"]
    try:
        return rescored(record, job, folder)
    except De3Error as error:
        note(f"{job.label} was scored otherwise, and its traces are not there: {error}")
        return None


def _matching(records: Iterable[Record], job: Job) -> Record | None:
    settings = json.loads(json.dumps(job.settings()))  # as JSON gives it back
    same = [r for r in records if _identity(r) == job.identity and r["settings"] == settings]
    return max(same, key=lambda record: str(record["date"]), default=None)


def _identity(record: Record) -> tuple[str, str, int]:
    return record["task"], record["training"], record["seed"]


def _read(paths: Iterable[Path]) -> list[Record]:
    return [read_record(path) for path in sorted(paths)]
