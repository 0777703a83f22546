"""A study file says which methods are compared on which tasks: TOML, checked at once."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from de3bert.data.packaged import minilm_folder
from de3bert.errors import UsageError
from de3bert.files import read_toml
from de3bert.training.argument_names import with_our_names

__all__ = ["LatencySpec", "StudySpec", "TaskSpec", "expand", "load_study"]

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
POOLING, SMALL = "pooling", "small_backbone"
SPEEDS = (1.5, 2.0, 2.5, 3.0, 4.0)
MINILM = "DE3_MINILM"  # stands for the packaged encoder where it is not set


class SpecSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskSpec(SpecSection):
    """One task: files, columns, how many rows, how it is scored.

    Args:
        train: the file that training and calibration rows are drawn from; they never overlap.
        test: name -> file; scores are reported on the first.
        rows: training rows; None takes all that calibration leaves.
        test_rows: at most so many rows of each test file, drawn once for all seeds and methods.
        metrics: what a score is; of several, their mean (GLUE scores MRPC by F1 and accuracy).
        seeds: instead of the study's.
        training: settings of [train] that differ for this task, by the same names.
    """

    name: str
    train: str
    test: dict[str, str] = Field(min_length=1)
    rows: int | None = Field(default=None, ge=2)
    calibration_rows: int = Field(ge=2)
    test_rows: int | None = Field(default=None, ge=2)
    text: str | None = None
    text_pair: str | None = None
    label: str | None = None
    max_length: int = Field(default=128, ge=8)
    metrics: list[str] = Field(default=["accuracy"], min_length=1)
    seeds: list[int] | None = Field(default=None, min_length=1)
    training: dict[str, Any] = {}

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        return _file_name(name)

    @field_validator("test")
    @classmethod
    def _tests_named(cls, test: dict[str, str]) -> dict[str, str]:
        return {_file_name(name): path for name, path in test.items()}

    @field_validator("training")
    @classmethod
    def _training_by_our_names(cls, training: dict[str, Any]) -> dict[str, Any]:
        return _our_names(training)

    @property
    def main_test(self) -> str:
        """The name of the test file that scores are reported on."""
        return next(iter(self.test))

    @property
    def metric(self) -> str:
        """The score's name, such as `f1+accuracy`."""
        return "+".join(self.metrics)


class LatencySpec(SpecSection):
    """Which models are timed when `--latency` asks for it: those of one task and one seed."""

    task: str | None = None  # None: the first
    rounds: int = Field(default=15, ge=3)


class StudySpec(SpecSection):
    """A whole study, in the order of the work: tasks, then seeds, then methods.

    Settings in `train` go by the names of a recipe or of `transformers.TrainingArguments`.

    Args:
        steps: `published` trains every method in its own phases, each of so many epochs as it
            declares; `equal` gives all of a method's phases together the epochs of [train], so that
            all make as many steps.
        paper_grid: chooses lambda among the paper's weights, which lack 0.
    """

    title: str = "Comparison of early-exit methods"
    backbone: str
    pooling: str | None = None
    seeds: list[int] = Field(default=[42], min_length=1)
    methods: list[str] = Field(min_length=1)
    chosen: str = "de3"
    speeds: list[float] = Field(default=list(SPEEDS), min_length=1)
    keep_models: bool = True
    steps: Literal["published", "equal"] = "published"
    paper_grid: bool = False
    train: dict[str, Any] = {}
    latency: LatencySpec | None = None
    # Name -> its options; `pooling` and `small_backbone`, a path like `backbone`, go there too.
    method: dict[str, dict[str, float | str]] = {}
    task: list[TaskSpec] = Field(min_length=1)

    @field_validator("train")
    @classmethod
    def _train_by_our_names(cls, train: dict[str, Any]) -> dict[str, Any]:
        return _our_names(train)

    @field_validator("speeds")
    @classmethod
    def _rising(cls, speeds: list[float]) -> list[float]:
        if any(speed < 1 for speed in speeds):
            raise ValueError(f"a layer speed-up is 1 or more, got {min(speeds):g}")
        return sorted(set(speeds))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [task.name for task in self.task]
        for what, values in (("task", names), ("method", self.methods), ("seed", self.seeds)):
            twice = [value for value, count in Counter(values).items() if count > 1]
            if twice:
                raise ValueError(f"the {what} {twice[0]} is there twice")
        if self.chosen not in self.methods:
            raise ValueError(f"the chosen method {self.chosen} is not among the methods")
        if self.latency and self.latency.task not in (None, *names):
            raise ValueError(f"latency.task is {self.latency.task}, which is none of the tasks")
        return self

    def seeds_of(self, task: TaskSpec) -> list[int]:
        return task.seeds or self.seeds

    def options_of(self, method: str) -> dict[str, float | str]:
        """The options that the study gives a method; what a recipe has elsewhere is left out."""
        given = self.method.get(method, {})
        return {name: value for name, value in given.items() if name not in (POOLING, SMALL)}

    def pooling_of(self, method: str) -> str | None:
        """The pooling that the study asks of this method alone."""
        return self._word_of(method, POOLING)

    def small_backbone_of(self, method: str) -> str | None:
        """The small encoder that the study gives a cascade, as it is written there."""
        return self._word_of(method, SMALL)

    def _word_of(self, method: str, name: str) -> str | None:
        given = self.method.get(method, {}).get(name)
        return None if given is None else str(given)

    def train_of(self, task: TaskSpec) -> dict[str, Any]:
        """The [train] settings of one task."""
        return {**self.train, **task.training}


def load_study(path: str | Path) -> StudySpec:
    """Reads and checks a study file; UsageError names every wrong setting."""
    settings = read_toml(Path(path), "The study file")
    try:
        return StudySpec.model_validate(settings)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc'])) or 'study'}: {e['msg']}" for e in error.errors()]
        raise UsageError(f"The study file {path} is not valid:\n" + "\n".join(lines)) from error


def expand(path: str) -> str:
    """A path with its environment variables filled in; one that is not set is an error.

    Only DE3_MINILM has a value of its own: the folder of the packaged MiniLM.
    """

    def value(match: re.Match[str]) -> str:
        name = match["braced"] or match["plain"]
        found = os.environ.get(name) or (str(minilm_folder()) if name == MINILM else None)
        if not found:
            raise UsageError(
                f"The study reads {path}, but the environment variable {name} is not set. "
                f"Set it to the folder that holds the material: export {name}=..."
            )
        return found

    return VARIABLE.sub(value, path)


def _our_names(train: dict[str, Any]) -> dict[str, Any]:
    """Now and not later: a task's setting replaces the study's, whichever names they go by."""
    try:
        made: dict[str, Any] = with_our_names({"train": train})["train"]
    except UsageError as error:
        raise ValueError(str(error)) from error
    return made


def _file_name(name: str) -> str:
    if not KEY_NAME.fullmatch(name):
        raise ValueError(f'"{name}" is to name files: letters, digits, dots, dashes, underscores')
    return name
