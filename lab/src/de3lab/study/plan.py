"""The trainings of a study in the order of their value, each under a name made of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from de3bert.errors import UsageError
from de3bert.exits.metrics import METRICS
from de3bert.methods import METHODS, Method
from de3bert.registry import unknown
from de3bert.training.recipe import Recipe, TrainRecipe, recipe_from
from de3lab.study.revisions import revision_of
from de3lab.study.spec import StudySpec, TaskSpec, expand

__all__ = ["Job", "check_methods", "plan", "selected", "train_recipe"]

ALWAYS = (  # the settings that count even at their default; of others only those that differ
    "epochs", "batch_size", "learning_rate", "weight_decay", "warmup", "max_grad_norm",
    "gradient_accumulation", "seed",
)  # fmt: skip


# What it means that an older run does not name a setting or an option.
NEUTRAL = {"head_rate": 1.0}
NEUTRAL_OPTIONS: Mapping[str, float | str] = {"poolers": "none"}


@dataclass(frozen=True)
class Job:
    """One training: a task, a seed, and the method whose training it is.

    Attributes:
        training: the method that is trained.
        methods: the compared methods that read this training's traces, in the study's order.
        teacher: the job whose model teaches this one, or whose trained model is given fitted
            exits by this one; None where there is none.
    """

    spec: StudySpec
    task: TaskSpec
    seed: int
    training: str
    methods: tuple[str, ...]
    teacher: Job | None = None

    @property
    def label(self) -> str:
        return f"{self.task.name} {self.training} seed {self.seed}"

    @property
    def identity(self) -> tuple[str, str, int]:
        return self.task.name, self.training, self.seed

    @cached_property
    def train(self) -> TrainRecipe:
        settings = {**self.spec.train_of(self.task), "seed": self.seed}
        if self.spec.steps == "equal":
            settings["epochs"] = _equal_epochs(self.training, self.options, settings)
        if METHODS[self.training].prototypes == "none":
            settings.pop("refresh_prototypes", None)  # there are none, and `fit` would refuse
        return train_recipe(settings)

    @property
    def pooling(self) -> str | None:
        """The study's, the same for all, unless it names another for this method."""
        return self.spec.pooling_of(self.training) or self.spec.pooling

    @property
    def options(self) -> dict[str, float | str]:
        """The options that the study gives the method."""
        return self.spec.options_of(self.training)

    def _resolved(self) -> dict[str, float | str]:
        """The options of the method, but for those that older methods had not and do without."""
        every = METHODS[self.training].resolve(self.options)
        return {name: v for name, v in every.items() if NEUTRAL_OPTIONS.get(name) != v}

    @property
    def small_backbone(self) -> str | None:
        """The small encoder that the study gives a cascade, as it is written there."""
        return self.spec.small_backbone_of(self.training)

    def settings(self) -> dict[str, Any]:
        """All that changes the result, except the content of files. No path is filled in."""
        task, every, revision = self.task, self.train.model_dump(), revision_of(self.training)
        usual = {name: field.default for name, field in TrainRecipe.model_fields.items()} | NEUTRAL
        changed = {name: value for name, value in every.items() if value != usual[name]}
        return {
            "method": self.training,
            "options": self._resolved(),
            "pooling": self.pooling,
            **({"small_backbone": small} if (small := self.small_backbone) else {}),
            "rows": task.rows,
            "calibration_rows": task.calibration_rows,
            "columns": [task.text, task.text_pair, task.label],
            "max_length": task.max_length,
            "train": {**{name: every[name] for name in ALWAYS}, **changed},
            "teacher": self.teacher.settings() if self.teacher else None,
            **({} if revision == 1 else {"revision": revision}),
        }

    def key(self, data: str, backbone: str, small_backbone: str | None = None) -> str:
        """The name of the run: what it is, and a hash of everything that changes the result.

        Args:
            data: hash of the training file.
            backbone: hash of the backbone.
            small_backbone: hash of the small encoder of a cascade.
        """
        content = {"settings": self.settings(), "data": data, "backbone": backbone}
        if small_backbone is not None:
            content["small_backbone"] = small_backbone
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return f"{self.task.name}-{self.training}-seed{self.seed}-{digest[:10]}"

    def recipe(self) -> Recipe:
        """What `fit` reads, with real paths."""
        task = self.task
        data = {
            "train": expand(task.train),
            "text": task.text,
            "text_pair": task.text_pair,
            "label": task.label,
            "max_length": task.max_length,
            "metric": task.metrics[0],
        }
        return recipe_from(
            {
                "backbone": expand(self.spec.backbone),
                "small_backbone": expand(small) if (small := self.small_backbone) else None,
                "method": self.training,
                "pooling": self.pooling,
                "data": data,
                "train": self.train.model_dump(),
                "method_options": self.options,
            }
        )


def plan(spec: StudySpec) -> list[Job]:
    """Every training once, in the order of the file: tasks, seeds, methods; teachers come first."""
    check_methods(spec)
    jobs: dict[tuple[str, str, int], Job] = {}
    for task in spec.task:
        for seed in spec.seeds_of(task):
            for name in spec.methods:
                _add(jobs, spec, task, seed, _training(name))
    return list(jobs.values())


def selected(jobs: Iterable[Job], only: Iterable[str]) -> list[Job]:
    """The jobs that a filter `task/method/seed` names (parts may be left out or have a `*`).

    Teachers of such jobs are among them.
    """
    filters = [_filter(text) for text in only]
    jobs = list(jobs)
    if not filters:
        return jobs
    wanted = {job.identity for job in jobs if any(_matches(job, parts) for parts in filters)}
    for job in jobs:
        if job.identity in wanted:
            wanted |= {teacher.identity for teacher in _teachers(job)}
    if not wanted:
        raise UsageError(f"--only {' '.join(only)} names no training of this study.")
    return [job for job in jobs if job.identity in wanted]


def check_methods(spec: StudySpec) -> None:
    """Refuses unknown methods, metrics and settings, and options in the wrong place."""
    for name in spec.methods:
        METHODS[name]
    trained = {part for name in spec.methods for part in _trainings(name)}
    for name in spec.method:
        method = METHODS[name]
        if name not in trained:
            shares = f": it shares the training of {method.training}" if method.training else ""
            raise UsageError(f"[method.{name}] changes nothing here{shares}. Remove it.")
        method.resolve(spec.options_of(name))
    for name in trained:
        METHODS[name].check_small_backbone(spec.small_backbone_of(name) is not None)
    for task in spec.task:
        for metric in task.metrics:
            METRICS[metric]
        settings = spec.train_of(task)
        if "seed" in settings:
            raise UsageError("A study's seeds are in its list `seeds`; remove the seed in [train].")
        for setting in settings:
            if setting not in TrainRecipe.model_fields:
                raise UsageError(unknown("setting in [train]", setting, TrainRecipe.model_fields))
        train_recipe(settings)


def _equal_epochs(
    training: str, options: Mapping[str, float | str], settings: Mapping[str, Any]
) -> float:
    """The recipe's epochs over all phases of a method together: DeeBERT's two have half each."""
    method = METHODS[training]
    given = method.resolve(options)
    phases = sum(method.number(phase.epochs, given) for phase in method.phases)
    epochs: float = train_recipe(settings).epochs
    return epochs / phases if phases else epochs


def train_recipe(settings: Mapping[str, Any]) -> TrainRecipe:
    """Checked settings of [train]; recipes are checked as a whole, so the rest is a stand-in."""
    anything = {"backbone": "any", "data": {"train": "any"}}
    return recipe_from({**anything, "train": dict(settings)}).train


def _add(
    jobs: dict[tuple[str, str, int], Job], spec: StudySpec, task: TaskSpec, seed: int, name: str
) -> Job:
    known = jobs.get((task.name, name, seed))
    if known is not None:
        return known
    above = _above(METHODS[name])
    teacher = _add(jobs, spec, task, seed, _training(above)) if above else None
    readers = tuple(method for method in spec.methods if _training(method) == name)
    job = Job(spec, task, seed, name, readers, teacher)
    return jobs.setdefault(job.identity, job)


def _training(name: str) -> str:
    return METHODS[name].training or name


def _trainings(name: str) -> Iterator[str]:
    """The training of a method and those of its teachers."""
    method: Method = METHODS[_training(name)]
    yield method.name
    if above := _above(method):
        yield from _trainings(above)


def _above(method: Method) -> str | None:
    """The method whose model must be there first."""
    return method.base or method.teacher


def _teachers(job: Job) -> Iterator[Job]:
    if job.teacher is not None:
        yield job.teacher
        yield from _teachers(job.teacher)


def _filter(text: str) -> Mapping[str, str]:
    parts = [part.strip() or "*" for part in text.split("/")]
    if len(parts) > 3:
        raise UsageError(f'--only takes task/method/seed, such as sst2/de3/42; got "{text}".')
    return dict(zip(("task", "method", "seed"), [*parts, "*", "*"], strict=False))


def _matches(job: Job, parts: Mapping[str, str]) -> bool:
    names = {job.training, *job.methods}
    return (
        fnmatchcase(job.task.name, parts["task"])
        and any(fnmatchcase(name, parts["method"]) for name in names)
        and fnmatchcase(str(job.seed), parts["seed"])
    )
