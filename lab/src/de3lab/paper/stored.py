"""What is stored in a results folder: studies, their runs, analyses. Nothing is trained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error
from de3bert.files import read_document
from de3lab.analysis import ANALYSES, read_result
from de3lab.paper.item import Item
from de3lab.paper.items import ITEMS
from de3lab.paper.places import PAPER
from de3lab.study.record import read_record
from de3lab.study.report import FORMAT, VERSION

__all__ = ["Stored"]

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Stored:
    """The documents of a results folder, read once.

    Attributes:
        folder: the results folder; it may be empty or missing.
        problems: what could not be read, in words; filled while reading.
    """

    folder: Path
    problems: list[str] = field(default_factory=list)

    def study(self, name: str) -> Document | None:
        """A study's `study.json`."""
        return self._studies.get(name)

    def runs(self, study: str) -> list[Document]:
        """The records of a study's finished runs."""
        return self._runs.get(study, [])

    def results(self, item: Item | str) -> dict[str, Document]:
        """Task -> result of an item's analysis, in the order of the item's tasks."""
        name = item if isinstance(item, str) else item.name
        return self._results.get(name, {})

    def document(self, name: str) -> Document | None:
        """Another JSON file of the folder, such as the timing of a training step."""
        path = self.folder / name
        if not path.exists():
            return None
        try:
            found: Document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self.problems.append(f"{name} cannot be read: {error}")
            return None
        return found

    @cached_property
    def _studies(self) -> dict[str, Document]:
        found = {}
        for name in _study_names():
            path = self.folder / name / "study.json"
            if path.exists() and (document := self._study(path)) is not None:
                found[name] = document
        return found

    def _study(self, path: Path) -> Document | None:
        try:
            return read_document(path, FORMAT, VERSION, "the result of a study")
        except De3Error as error:
            self.problems.append(f"{self._short(path)}: {error}")
            return None

    @cached_property
    def _runs(self) -> dict[str, list[Document]]:
        found: dict[str, list[Document]] = {}
        for name in _study_names():
            for path in sorted((self.folder / name / "runs").glob("*.json")):
                try:
                    found.setdefault(name, []).append(read_record(path))
                except De3Error as error:
                    self.problems.append(str(error))
        return found

    @cached_property
    def _results(self) -> dict[str, dict[str, Document]]:
        found: dict[str, dict[str, Document]] = {}
        for item in ITEMS.values():
            if item.measured is None:
                continue
            for path in sorted((self.folder / PAPER / item.name).glob("*/result.json")):
                document = self._result(path, item.measured.analysis)
                if document is not None:
                    found.setdefault(item.name, {})[path.parent.name] = document
        return {name: _ordered(ITEMS[name], seen) for name, seen in found.items()}

    def _result(self, path: Path, analysis: str) -> Document | None:
        """A result whose tables can be made: one that other versions wrote may lack numbers."""
        try:
            document = read_result(path)
            if document["analysis"] != analysis:
                raise De3Error(f"it is one of `{document['analysis']}`, not of `{analysis}`")
            ANALYSES[analysis].tables(document["numbers"])
        except De3Error as error:
            self.problems.append(f"{self._short(path)}: {error}")
            return None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self.problems.append(f"{self._short(path)} lacks numbers ({type(error).__name__})")
            return None
        return document

    def _short(self, path: Path) -> Path:
        return path.relative_to(self.folder)


def _study_names() -> list[str]:
    names = (item.trained.study for item in ITEMS.values() if item.trained is not None)
    return list(dict.fromkeys(names))


def _ordered(item: Item, found: Mapping[str, Document]) -> dict[str, Document]:
    wanted = [*(item.trained.tasks if item.trained else ()), *found]
    return {task: found[task] for task in dict.fromkeys(wanted) if task in found}
