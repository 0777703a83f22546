"""How far a study is and how long it may still take, from the trainings done so far."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from de3bert.methods import METHODS
from de3lab.documents import RunRecord
from de3lab.study.plan import Job

__all__ = ["Countdown", "duration", "work_of"]


def work_of(job: Job, rows: int | None = None) -> float:
    """A rough measure of a training: rows times epochs, over all its phases."""
    method = METHODS[job.training]
    options = method.resolve(job.options)
    epochs = sum(method.number(phase.epochs, options) for phase in method.phases)
    return float(job.task.rows or rows or 1) * job.train.epochs * epochs


def duration(seconds: float) -> str:
    """A time for people: `40 s`, `5 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Countdown:
    """Tells what is left: seconds per row of finished trainings times the rows to come.

    Args:
        jobs: all trainings of this call.
        records: of those that were done before.
        rows: training rows of a task, by name.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        records: Iterable[RunRecord],
        rows: Mapping[str, int] | None = None,
    ) -> None:
        self.jobs = list(jobs)
        self.rows = rows or {}
        self.start = time.monotonic()
        self.spent: dict[tuple[str, str, int], float] = {}
        for record in records:
            self.done(record)

    def done(self, record: RunRecord) -> None:
        self.spent[record.identity] = record.training_record.seconds

    def left(self) -> float | None:
        """Seconds that the trainings to come may take; None before the first is done."""
        finished = [job for job in self.jobs if job.identity in self.spent]
        seconds = sum(self.spent[job.identity] for job in finished)
        work = sum(self._work(job) for job in finished)
        if not seconds or not work:
            return None
        ahead = sum(self._work(job) for job in self.jobs if job.identity not in self.spent)
        return ahead * seconds / work

    def line(self, job: Job) -> str:
        """`12 of 46: sst2 de3 seed 42 (5 min so far, about 3 h left)`."""
        number = self.jobs.index(job) + 1
        so_far = f"{duration(time.monotonic() - self.start)} so far"
        left = self.left()
        rest = "" if left is None else f", about {duration(left)} left"
        return f"{number} of {len(self.jobs)}: {job.label} ({so_far}{rest})"

    def _work(self, job: Job) -> float:
        return work_of(job, self.rows.get(job.task.name))
