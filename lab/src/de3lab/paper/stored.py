"""What is stored in a results folder: studies, their runs, analyses. Nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from de3bert.errors import De3Error
from de3bert.files import read_json
from de3lab.analysis import ANALYSES
from de3lab.documents import AnalysisResult, RunRecord, StudyResult
from de3lab.paper.folders import PAPER
from de3lab.paper.item import Item

__all__ = ["Stored"]

Read = TypeVar("Read")


@dataclass(frozen=True)
class Stored:
    """The documents of a results folder, each read once.

    Attributes:
        folder: the results folder; it may be empty or missing.
        problems: what could not be read, in words; filled while reading.
    """

    folder: Path
    problems: list[str] = field(default_factory=list)
    _known: dict[Path, Any] = field(default_factory=dict, repr=False)

    def study(self, name: str) -> StudyResult | None:
        """A study's `study.json`."""
        return self._read(self.folder / name / "study.json", StudyResult.read)

    def runs(self, study: str) -> list[RunRecord]:
        """The records of a study's finished runs."""
        paths = sorted((self.folder / study / "runs").glob("*.json"))
        found = (self._read(path, RunRecord.read) for path in paths)
        return [record for record in found if record is not None]

    def results(self, item: Item) -> dict[str, AnalysisResult]:
        """Task -> result of an item's analysis, in the order of the item's tasks."""
        if item.measurement is None or item.training is None:
            return {}
        analysis = item.measurement.analysis
        found = {
            path.parent.name: self._read(path, lambda path: _read_result(path, analysis))
            for path in sorted((self.folder / PAPER / item.name).glob("*/result.json"))
        }
        known = {task: document for task, document in found.items() if document is not None}
        wanted = dict.fromkeys([*item.training.tasks, *known])
        return {task: known[task] for task in wanted if task in known}

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Another JSON file of the folder, such as the timing of a training step."""
        return self._read(self.folder / name, read_json)

    def _read(self, path: Path, read: Callable[[Path], Read]) -> Read | None:
        """What a file holds, None where it is missing or, with a problem noted, of no use."""
        if path not in self._known:
            try:
                self._known[path] = read(path) if path.exists() else None
            except De3Error as error:
                self._known[path] = None
                self.problems.append(f"{path.relative_to(self.folder)}: {error}")
        found: Read | None = self._known[path]
        return found


def _read_result(path: Path, analysis: str) -> AnalysisResult:
    """A result whose tables can be made: one that other versions wrote may lack numbers."""
    document = AnalysisResult.read(path)
    if document.analysis != analysis:
        raise De3Error(f"it is one of `{document.analysis}`, not of `{analysis}`")
    try:
        ANALYSES[analysis].tables(document.numbers)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise De3Error(f"it lacks numbers ({type(error).__name__})") from error
    return document
