"""Working through a study: one training after the other, with progress, until stopped or done."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from de3bert.errors import De3Error
from de3bert.files import write_text
from de3lab.study.collect import keep_record, kept_record
from de3lab.study.execute import Study
from de3lab.study.plan import selected
from de3lab.study.progress import Countdown

__all__ = ["FAILURE", "check_failures", "failure_reason", "run_study"]

FAILURE = "failure.txt"
TRAININGS_FAILED = "trainings failed and are not in the report"


def run_study(
    study: Study,
    place: Path,
    *,
    only: Sequence[str] = (),
    progress: bool = True,
    fresh: bool = False,
    again: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Does what is not done yet, in the order of the plan; each record is copied to `place`.

    Run in several processes at once, each takes the trainings that no other one is at.

    A training that fails is noted and left out, and the study goes on with the next: hours of work
    on other methods must not wait for it. What could be refused is refused before any training.

    Args:
        only: filters, see `selected`.
        fresh: starts unfinished trainings over.
        again: also does what has a record in `place` but no traces any more; without it, records
            made on another machine count.

    Returns:
        Label -> reason of the trainings that failed.
    """
    jobs = selected(study.jobs, only)
    if not again:
        jobs = [job for job in jobs if kept_record(place, job) is None]
    study.check()
    known = {job.identity: record for job in jobs if (record := study.stored(job)) is not None}
    for record in known.values():
        keep_record(place, record)
    rows = {job.task.name: study.material(job).train_rows for job in jobs}
    clock = Countdown(jobs, known.values(), rows)
    failed = {}
    with _stopped_by_sigterm():
        for job in (job for job in jobs if job.identity not in known):
            with study.claim(job) as mine:
                if not mine:
                    note(f"{job.label}: another process is working on it")
                    continue
                note(clock.line(job))
                try:
                    record = study.run(job, progress=progress, fresh=fresh)
                except Exception as error:  # see above: whatever a method may raise
                    failed[job.label] = failure_reason(error, study.folder(job) / FAILURE)
                    note(f"{job.label} failed: {failed[job.label]}")
                    continue
            clock.done(record)
            keep_record(place, record)
    return failed


def check_failures(failed: dict[str, str], said: str = TRAININGS_FAILED) -> None:
    """De3Error that lists what failed, if anything did; `said` follows their number."""
    if failed:
        lines = "\n".join(f"  {label}: {reason}" for label, reason in failed.items())
        raise De3Error(
            f"{len(failed)} {said}:\n{lines}\nRun the same command again to try them once more."
        )


def failure_reason(error: Exception, path: Path) -> str:
    """What went wrong, in a line; where it is no message for users, the whole story in a file."""
    if isinstance(error, De3Error):
        return str(error)
    write_text(path, "".join(traceback.format_exception(error)))
    return f"{type(error).__name__}: {error} (more in {path})"


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the study like Ctrl-C, also between trainings."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        old = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: signals are somebody else's business
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)
