"""Which finished runs a report is made of: exact ones by content, or stored records by settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error
from de3lab.documents import RunRecord
from de3lab.study.execute import Study
from de3lab.study.plan import Job
from de3lab.study.record import RUN, is_scored_alike, rescored, scored_as
from de3lab.study.revisions import outdated

__all__ = ["collect", "keep_record", "kept_record"]


def keep_record(place: Path, record: RunRecord) -> None:
    """Copies a record to the report; one of the same run with other settings goes."""
    folder = place / "runs"
    for path in folder.glob("*.json"):
        if path.stem != record.key and RunRecord.read(path).identity == record.identity:
            path.unlink()
    record.write(folder / f"{record.key}.json")


def kept_record(place: Path, job: Job) -> RunRecord | None:
    """The record of a job in a report: of its task, method, seed and settings; None without one."""
    return _matching(_read((place / "runs").glob(f"{job.task.name}-{job.training}-*.json")), job)


def collect(
    study: Study,
    place: Path,
    *,
    exact: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> list[RunRecord]:
    """The records of all finished runs of a study.

    Args:
        exact: data and backbone must be there and have the content that the run was made from.
            Otherwise neither is read, and a run counts when task, method, seed and all settings are
            the study's: records in the report first, then the newest among the runs. One that was
            scored by other speeds, metrics or methods is scored again from its traces; one that was
            scored in an older way, too, or stays as it is where its traces are missing.

    Returns:
        Where nothing of a training is there but runs of an older revision of its method, these:
        they are shown, and do not count (`de3lab.study.revisions`).
    """
    if exact:
        known = (study.stored(job) for job in study.jobs)
        found = [record for record in known if record is not None]
        for record in found:
            keep_record(place, record)
    else:
        found = _by_settings(study, place, note)
    return [*found, *_withdrawn(study, place, {record.training for record in found})]


def _by_settings(study: Study, place: Path, note: Callable[[str], None]) -> list[RunRecord]:
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


def _as_asked(
    study: Study, job: Job, record: RunRecord, note: Callable[[str], None]
) -> RunRecord | None:
    if record.scored_as == scored_as(job):
        return record
    folder = study.runs / record.key
    try:
        return rescored(record, job, folder)
    except De3Error as error:
        if is_scored_alike(record, job):
            return record
        note(f"{job.label} was scored with other settings, and its traces are missing: {error}")
        return None


def _withdrawn(study: Study, place: Path, current: set[str]) -> list[RunRecord]:
    """Records of older revisions in the report, of trainings that have no others.

    The options of a method may have changed with its revision, and do not matter here; nor does
    what it begins with.
    """
    old = [record for record in _read((place / "runs").glob("*.json")) if outdated(record)]
    found = []
    for job in (job for job in study.jobs if job.training not in current):
        wanted = _apart_from_method(json.loads(json.dumps(job.settings())))
        same = (
            record
            for record in old
            if record.identity == job.identity
            and _apart_from_method(record.settings) == wanted
            and is_scored_alike(record, job)
        )
        found += list(same)[:1]
    return found


def _apart_from_method(settings: Mapping[str, Any]) -> dict[str, Any]:
    own = ("options", "revision", "small_backbone")
    return {name: settings[name] for name in settings if name not in own}


def _matching(records: Iterable[RunRecord], job: Job) -> RunRecord | None:
    settings = json.loads(json.dumps(job.settings()))  # as JSON gives it back
    same = [r for r in records if r.identity == job.identity and r.settings == settings]
    return max(same, key=lambda record: record.date, default=None)


def _read(paths: Iterable[Path]) -> list[RunRecord]:
    return [RunRecord.read(path) for path in sorted(paths)]
