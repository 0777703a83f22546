"""`de3 paper run`: trains what items need and makes their results; what is there stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from de3bert.errors import De3Error, UsageError
from de3lab.paper.folders import Folders, StudyWork
from de3lab.paper.item import Item, Training
from de3lab.paper.items import item_named, runnable
from de3lab.paper.measure import measure_item
from de3lab.study.plan import Job, selected
from de3lab.study.report import write_report
from de3lab.study.run import failure_reason, run_study

__all__ = ["ALL", "ITEMS_FAILED", "items_to_run", "run_items", "wanted_jobs"]

ALL = "all"
ITEMS_FAILED = "of the things to do failed; the others are done"
Note = Callable[[str], None]


def items_to_run(name: str) -> list[Item]:
    """One item, or all in the order of their value; UsageError for what needs no run."""
    if name == ALL:
        return runnable()
    item = item_named(name)
    if item.training is None:
        raise UsageError(
            f"{item.name} ({item.reference}) needs no run: `de3 paper all` makes it from what the "
            "package and stored results say."
        )
    return [item]


def run_items(
    items: Sequence[Item],
    folders: Folders,
    *,
    only: Sequence[str] = (),
    progress: bool = True,
    note: Note = lambda text: None,
) -> dict[str, str]:
    """Runs items one after the other; one that fails does not keep the others.

    Args:
        only: filters `task/method/seed`; an item that they leave nothing of is passed over.

    Returns:
        What failed -> why.
    """
    failed: dict[str, str] = {}
    plans = [(item, _works(item, folders, only)) for item in items]
    wanted = [(item, works) for item, works in plans if works]
    if not wanted:
        raise UsageError(
            f"--only {' '.join(only)} names no training of {', '.join(i.name for i in items)}. "
            "It takes task/method/seed, such as sst2/de3/42."
        )
    for item, works in wanted:
        note(f"{item.name} ({item.reference}): {item.title}")
        try:
            failed |= _run(item, works, folders, only, progress, note)
        except Exception as error:  # the work on other items must not wait for this one
            if len(items) == 1 and isinstance(error, De3Error):
                raise
            failed[item.name] = failure_reason(error, folders.runs / f"failure-{item.name}.txt")
            note(f"{item.name} failed: {failed[item.name]}")
    return failed


def _works(item: Item, folders: Folders, only: Sequence[str]) -> list[StudyWork]:
    """The item's studies; none where the filters leave nothing to do."""
    assert item.training is not None
    works = list(folders.works(item.training, item.command))
    return works if wanted_jobs(works[0], item.training, only) else []


def _run(
    item: Item,
    works: Sequence[StudyWork],
    folders: Folders,
    only: Sequence[str],
    progress: bool,
    note: Note,
) -> dict[str, str]:
    assert item.training is not None
    failed: dict[str, str] = {}
    tasks = _tasks(only, [task.name for task in works[0].study.spec.task])
    for work in works:  # measurement after each, so that a run that is stopped leaves a result
        failed |= _train(work, item.training, only=only, progress=progress, note=note)
        failed |= measure_item(item, works, folders, tasks=tasks, progress=progress, note=note)
    return failed


def _tasks(only: Sequence[str], known: Sequence[str]) -> list[str]:
    """The tasks that the filters name; all without filters."""
    patterns = [text.split("/")[0].strip() or "*" for text in only] or ["*"]
    return [task for task in known if any(fnmatchcase(task, each) for each in patterns)]


def _train(
    work: StudyWork,
    training: Training,
    *,
    only: Sequence[str] = (),
    progress: bool = True,
    note: Note = lambda text: None,
) -> dict[str, str]:
    """Trains, traces and scores what is missing, and writes the report of the study.

    Args:
        only: filters `task/method/seed` on top of what the item needs.

    Returns:
        Label -> reason of the trainings that failed.
    """
    exact = ["/".join(map(str, job.identity)) for job in wanted_jobs(work, training, only)]
    lost = run_study(work.study, work.report, only=exact, progress=progress, note=note)
    try:
        write_report(work.study, work.report, note=note)
    except De3Error as error:  # nothing is finished: another process may be at all of it
        note(str(error))
    return {f"{label} {work.label}".strip(): reason for label, reason in lost.items()}


def wanted_jobs(work: StudyWork, training: Training, only: Sequence[str]) -> list[Job]:
    """The jobs that the item needs and the filters name, teachers among them; may be none."""
    needed = selected(work.study.jobs, training.filters)
    try:
        asked = {job.identity for job in selected(work.study.jobs, only)}
    except UsageError:
        return []
    return [job for job in needed if job.identity in asked]
