"""The rows of a task: read once, cut by seed, the same for every method."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import split_rows
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3lab.study.spec import TaskSpec, expand

if TYPE_CHECKING:
    from de3bert.training.splits import Splits

__all__ = ["TaskRows", "backbone_sha256", "read_material"]

CONTENT = ("*.safetensors", "*.bin", "config.json", "tokenizer*.json", "vocab.*", "*.model")


@dataclass(frozen=True)
class TaskRows:
    """All rows of a task.

    Attributes:
        source: the whole training file; rows of a seed are cut out of it.
        tests: name -> rows to score on, the main ones first.
    """

    task: TaskSpec
    source: Table
    tests: dict[str, Table]

    @cached_property
    def labels(self) -> LabelSet:
        return LabelSet.from_values(self.source.labels or [], names=self.source.label_names)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The class of each row of the training file, (rows,)."""
        return self.labels.encode(self.source.labels or [], names=self.source.label_names)

    @property
    def train_rows(self) -> int:
        return self.task.rows or len(self.source) - self.task.calibration_rows

    def hashes(self) -> dict[str, str]:
        """The content of every file, by its part in the study."""
        tests = {f"test-{name}": table.sha256 for name, table in self.tests.items()}
        return {"train": self.source.sha256, **tests}

    def cut(self, seed: int) -> dict[str, NDArray[np.int64]]:
        """Which rows a seed trains on and which it calibrates with; they share none."""
        sizes = {"train": self.train_rows, "calibration": self.task.calibration_rows}
        return split_rows(self.numbers, sizes, seed)

    def splits(self, seed: int) -> Splits:
        from de3bert.training.splits import Splits

        parts = self.cut(seed)
        train, held = parts["train"], parts["calibration"]
        return Splits(
            self.labels,
            self.source.take(train.tolist()),
            self.numbers[train],
            self.source.take(held.tolist()),
            self.numbers[held],
        )


def read_material(task: TaskSpec) -> TaskRows:
    """Reads a task's files and refuses at once what could only fail later."""
    try:
        source = _read(task, task.train)
        material = TaskRows(task, source, dict(_tests(task, source)))
        if material.train_rows < 2 or material.train_rows + task.calibration_rows > len(
            material.source
        ):
            raise UsageError(
                f"{material.train_rows} training and {task.calibration_rows} calibration rows are "
                f"asked for, and {material.source.source} has {len(material.source)}."
            )
        for table in material.tests.values():
            material.labels.encode(table.labels or [], names=table.label_names)
            if (table.pairs is None) != (material.source.pairs is None):
                raise UsageError(f"{table.source}: texts and pairs of texts are mixed.")
        material.cut(seed=0)  # too few rows of some class
    except De3Error as error:
        raise type(error)(f"Task {task.name}: {error}") from error
    return material


def backbone_sha256(backbone: str) -> str:
    """A hash of a backbone's weights, config and tokenizer; of its name when it is a hub id."""
    folder = Path(backbone)
    digest = hashlib.sha256()
    if not folder.is_dir():
        digest.update(backbone.encode())
        return digest.hexdigest()
    found = {path for pattern in CONTENT for path in folder.glob(pattern)}
    for path in sorted(found):
        with path.open("rb") as file:
            digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()


def _tests(task: TaskSpec, source: Table) -> Iterator[tuple[str, Table]]:
    """The test files, cut to `test_rows`: every class in its share, the same rows for everybody."""
    labels = LabelSet.from_values(source.labels or [], names=source.label_names)
    for name, path in task.test.items():
        table = _read(task, path)
        if task.test_rows is not None and len(table) > task.test_rows:
            numbers = labels.encode(table.labels or [], names=table.label_names)
            kept = split_rows(numbers, {"test": task.test_rows}, seed=0)["test"]
            table = table.take(kept.tolist())
        yield name, table


def _read(task: TaskSpec, path: str) -> Table:
    return read_table(expand(path), text=task.text, text_pair=task.text_pair, label=task.label)
