"""The scores of all finished runs, by task, method and seed: what aggregation reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from de3bert.methods import METHODS
from de3lab.documents import RunRecord, TestScores
from de3lab.study.lines import speed_key
from de3lab.study.revisions import outdated
from de3lab.study.spec import StudySpec

__all__ = ["Results", "is_ranked"]


def is_ranked(method: str) -> bool:
    """The oracle reads the labels: it is shown, never ranked nor tested."""
    return "oracle" not in METHODS[method].families


@dataclass(frozen=True)
class Results:
    """Finished runs of a study, on the main test rows of each task."""

    spec: StudySpec
    records: Sequence[RunRecord]

    @cached_property
    def found(self) -> dict[tuple[str, str, int], TestScores]:
        """(task, method, seed) -> what the method scored on the task's main test rows."""
        main = {task.name: task.main_test for task in self.spec.task}
        return {
            (record.task, method, record.seed): scored.tests[main[record.task]]
            for record in self.records
            for method, scored in record.methods.items()
            if method in self.spec.methods
        }

    @cached_property
    def records_of(self) -> dict[tuple[str, str, int], RunRecord]:
        """(task, method, seed) -> the record of the run that the method reads."""
        return {
            (record.task, method, record.seed): record
            for record in self.records
            for method in record.methods
        }

    @cached_property
    def trained(self) -> dict[tuple[str, str, int], RunRecord]:
        """(task, training, seed) -> its record."""
        return {record.identity: record for record in self.records}

    @property
    def tasks(self) -> list[str]:
        return [task.name for task in self.spec.task]

    @cached_property
    def withdrawn(self) -> dict[str, str]:
        """Method -> why its results do not count: all of them are of an older revision."""
        reasons = {
            method: outdated(record)
            for (_, method, _), record in self.records_of.items()
            if method in self.spec.methods
        }
        return {method: reason for method, reason in reasons.items() if reason is not None}

    def built_poolings(self, method: str) -> list[str]:
        """What the exits of a method's finished models read, by name."""
        records = (record for (_, name, _), record in self.records_of.items() if name == method)
        return sorted({record.built_pooling for record in records if record.built_pooling})

    @property
    def ranked(self) -> list[str]:
        """The methods that are compared: not the oracle, nor what is withdrawn."""
        return [m for m in self.spec.methods if is_ranked(m) and m not in self.withdrawn]

    def seeds(self, task: str, methods: Iterable[str]) -> list[int]:
        """The seeds that all these methods have finished on a task."""
        listed = next(each for each in self.spec.task if each.name == task)
        names = list(methods)
        return [
            seed
            for seed in self.spec.seeds_of(listed)
            if all((task, method, seed) in self.found for method in names)
        ]

    @cached_property
    def complete(self) -> list[str]:
        """The tasks that every ranked method has finished with at least one common seed."""
        return [task for task in self.tasks if self.ranked and self.seeds(task, self.ranked)]

    def each(self, task: str, method: str) -> list[tuple[int, TestScores]]:
        """(seed, result) of every finished seed."""
        return [(seed, self.found[task, method, seed]) for seed in self.seeds(task, [method])]

    def values(self, task: str, method: str, speed: float) -> dict[int, float]:
        """Seed -> score at a speed, where it is reached."""
        key = speed_key(speed)
        reached = {seed: found.at.get(key) for seed, found in self.each(task, method)}
        return {seed: seen.score for seed, seen in reached.items() if seen is not None}

    def pairs(
        self, task: str, ours: str, theirs: str, speed: float
    ) -> tuple[list[float], list[float]]:
        """The scores of two methods for the seeds that both have."""
        first, second = self.values(task, ours, speed), self.values(task, theirs, speed)
        both = [seed for seed in first if seed in second]
        return [first[seed] for seed in both], [second[seed] for seed in both]
