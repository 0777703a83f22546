"""Training what an item needs and is not there yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from de3bert.errors import De3Error, UsageError
from de3lab.paper.item import Trained
from de3lab.paper.places import Work
from de3lab.study.plan import Job, selected
from de3lab.study.report import write_report
from de3lab.study.run import run_study

__all__ = ["train_work", "wanted_jobs"]


def train_work(
    work: Work,
    trained: Trained,
    *,
    only: Sequence[str] = (),
    progress: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Trains, traces and scores what is missing, and writes the report of the study.

    Args:
        only: filters `task/method/seed` on top of what the item needs.

    Returns:
        Label -> reason of the trainings that failed.
    """
    exact = ["/".join(map(str, job.identity)) for job in wanted_jobs(work, trained, only)]
    lost = run_study(work.study, work.report, only=exact, progress=progress, note=note)
    try:
        write_report(work.study, work.report, note=note)
    except De3Error as error:  # nothing is finished: another process may be at all of it
        note(str(error))
    return {f"{label} {work.label}".strip(): reason for label, reason in lost.items()}


def wanted_jobs(work: Work, trained: Trained, only: Sequence[str]) -> list[Job]:
    """The jobs that the item needs and the filters name, teachers among them; may be none."""
    needed = selected(work.study.jobs, trained.filters)
    try:
        asked = {job.identity for job in selected(work.study.jobs, only)}
    except UsageError:
        return []
    return [job for job in needed if job.identity in asked]
