"""`de3 paper run`: trains what items need and makes their results; what is there stays."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from de3bert.errors import De3Error, UsageError
from de3bert.files import write_text
from de3lab.paper.item import Item
from de3lab.paper.items import item_named, runnable
from de3lab.paper.measure import measure_item
from de3lab.paper.places import Places, Work
from de3lab.paper.train import train_work, wanted_jobs

__all__ = ["ALL", "check_failures", "items_to_run", "run_items"]

ALL = "all"
Note = Callable[[str], None]


def items_to_run(name: str) -> list[Item]:
    """One item, or all in the order of their value; UsageError for what needs no run."""
    if name == ALL:
        return runnable()
    item = item_named(name)
    if item.trained is None:
        raise UsageError(
            f"{item.name} ({item.reference}) needs no run: `de3 paper all` makes it from what the "
            "package and stored results say."
        )
    return [item]


def run_items(
    items: Sequence[Item],
    places: Places,
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
    plans = [(item, _works(item, places, only)) for item in items]
    wanted = [(item, works) for item, works in plans if works]
    if not wanted:
        raise UsageError(
            f"--only {' '.join(only)} names no training of {', '.join(i.name for i in items)}. "
            "It takes task/method/seed, such as sst2/de3/42."
        )
    for item, works in wanted:
        note(f"{item.name} ({item.reference}): {item.title}")
        try:
            failed |= _run(item, works, places, only, progress, note)
        except Exception as error:  # the work on other items must not wait for this one
            if len(items) == 1 and isinstance(error, De3Error):
                raise
            failed[item.name] = _reason(item, places, error)
            note(f"{item.name} failed: {failed[item.name]}")
    return failed


def check_failures(failed: dict[str, str]) -> None:
    """De3Error that lists what failed, if anything did."""
    if failed:
        lines = "\n".join(f"  {label}: {reason}" for label, reason in failed.items())
        raise De3Error(
            f"{len(failed)} of the things to do failed; the others are done:\n{lines}\n"
            "Run the same command again to try them once more."
        )


def _works(item: Item, places: Places, only: Sequence[str]) -> list[Work]:
    """The item's studies; none where the filters leave nothing to do."""
    assert item.trained is not None
    works = list(places.works(item.trained, item.command))
    return works if wanted_jobs(works[0], item.trained, only) else []


def _run(
    item: Item,
    works: Sequence[Work],
    places: Places,
    only: Sequence[str],
    progress: bool,
    note: Note,
) -> dict[str, str]:
    assert item.trained is not None
    failed: dict[str, str] = {}
    tasks = _tasks(only, [task.name for task in works[0].study.spec.task])
    for work in works:  # measured after each, so that a run that is stopped leaves a result
        failed |= train_work(work, item.trained, only=only, progress=progress, note=note)
        failed |= measure_item(item, works, places, tasks=tasks, progress=progress, note=note)
    return failed


def _tasks(only: Sequence[str], known: Sequence[str]) -> list[str]:
    """The tasks that the filters name; all without filters."""
    patterns = [text.split("/")[0].strip() or "*" for text in only] or ["*"]
    return [task for task in known if any(fnmatchcase(task, each) for each in patterns)]


def _reason(item: Item, places: Places, error: Exception) -> str:
    """What went wrong, in a line; where it is no message for users, the whole story in a file."""
    if isinstance(error, De3Error):
        return str(error)
    path = places.runs / f"failure-{item.name}.txt"
    write_text(path, "".join(traceback.format_exception(error)))
    return f"{type(error).__name__}: {error} (more in {path})"
