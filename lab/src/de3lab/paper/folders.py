"""The folders of study files, runs and results; and what lies there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from de3bert.errors import UsageError
from de3lab.paper.item import Item, Training
from de3lab.study.execute import Study
from de3lab.study.spec import StudySpec, load_study

__all__ = ["PAPER", "Folders", "StudyWork"]

PAPER = "paper"  # the folder of analyses within the results


@dataclass(frozen=True)
class StudyWork:
    """One study that is to be trained for an item.

    Attributes:
        label: of the value of a varied option; empty where nothing is varied.
        report: where its report goes.
    """

    study: Study
    report: Path
    label: str = ""


@dataclass(frozen=True)
class Folders:
    """The three folders.

    Attributes:
        studies: study files, which come with the repository.
        runs: models and traces; one folder for all studies, so that they share trainings.
        results: what is kept: `STUDY/study.json`, `paper/ITEM/TASK/result.json`.
    """

    studies: Path
    runs: Path
    results: Path

    def spec(self, name: str) -> StudySpec:
        if not self.studies.is_dir():
            raise UsageError(
                f"There is no folder {self.studies} with the paper's study files. They come with "
                "the repository, not with the package: run in a clone of it, or say where they "
                "are with --studies."
            )
        path = self.studies / f"{name}.toml"
        if not path.exists():
            raise UsageError(
                f"The study file {path} is not there. Take the folder {self.studies.name} of the "
                "repository unchanged, or say where another one is with --studies."
            )
        return load_study(path)

    def works(self, training: Training, command: str = "") -> Iterator[StudyWork]:
        """The studies of an item: one, or one for each value of a varied option."""
        spec = self.spec(training.study)
        varied, report = training.varied, self.results / training.study
        if varied is None:
            yield StudyWork(Study(spec, self.runs, command), report)
            return
        for value in varied.values:
            options = {**spec.method.get(varied.method, {}), varied.option: value}
            changed = spec.model_copy(update={"method": {**spec.method, varied.method: options}})
            label = varied.label(value)
            place = report / f"{varied.option}-{label}"
            yield StudyWork(Study(changed, self.runs, command), place, label)

    def result(self, item: Item, task: str) -> Path:
        """The folder of an analysis."""
        return self.results / PAPER / item.name / task
