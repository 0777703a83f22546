"""The result of a study: what was compared, how far it is, and all aggregated numbers.

Most tables go by layer speed-up (as `2.5`), task and method, in this order.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias, TypeVar

from pydantic import Field, model_validator

from de3lab.documents.document import Document, Part
from de3lab.documents.run import CurvePoints

__all__ = [
    "OWN",
    "CalibratedMean",
    "Latency",
    "Mean",
    "MethodFacts",
    "PointMean",
    "Score",
    "StepCount",
    "StudyResult",
    "TaskFacts",
]

Value = TypeVar("Value")
OWN = "own"  # the key of a method that has one speed
ByTask: TypeAlias = dict[str, dict[str, Value]]  # task -> method -> value
BySpeed: TypeAlias = dict[str, ByTask[Value]]


class Progress(Part):
    done: int
    of: int
    missing: list[str]


class MethodFacts(Part):
    """A compared method.

    Attributes:
        ranked: whether it is ranked and tested. The oracle, which reads labels, is only shown, and
            so is a method that is withdrawn.
        withdrawn: why its results do not count, where they do not.
        pooling: what the study gave it; `declared_pooling` is its own, None for what fits, and
            `built_poolings` is what the finished models have: several where older ones had another.
    """

    name: str
    group: str
    summary: str
    citation: str
    ranked: bool
    training: str
    withdrawn: str | None = None
    pooling: str | None = None
    declared_pooling: str | None = None
    built_poolings: tuple[str, ...] = ()


class TaskFacts(Part):
    """A task; `rows` is None while nothing of it is finished.

    Attributes:
        training: epochs, learning rate and the like, the same for all methods.
    """

    name: str
    metric: str
    metrics: list[str]
    test: str
    seeds: list[int]
    rows: dict[str, int] | None
    training: dict[str, float | str | None] = Field(default={})


class Mean(Part):
    """A mean over seeds, with their sample deviation (None for one)."""

    mean: float
    sd: float | None
    n: int


class Score(Mean):
    """Scores at a speed: of each seed, and each metric's mean."""

    values: dict[str, float]
    each: dict[str, float]


class PointMean(Mean):
    """A score at the one speed there is; `each` has its metrics."""

    layer_speedup: float
    each: dict[str, float] = Field(default={})


class CalibratedMean(PointMean):
    """What points that calibration rows chose for a speed give on test rows.

    Attributes:
        low, high: 95 % interval of the layer speed-up, None where there is none.
        over: what varies in it: `seeds` where there are two or more, else `rows`.
        off: whether the wanted speed lies outside of it.
    """

    low: float | None = None
    high: float | None = None
    over: str | None = None
    off: bool = False


class StepCount(Part):
    """Optimizer steps of a training.

    Attributes:
        steps: all of them, those of the model that exits were fitted to included.
        phases: phase -> its steps.
        teacher: steps of the model that it learned from, which are not among them.
    """

    steps: int
    phases: dict[str, int]
    teacher: int | None = None


class AreaMean(Mean):
    low: float
    high: float
    whole: bool


class CurveMean(CurvePoints):
    """`sd` is the sample deviation over seeds, None for one."""

    n: int
    sd: list[float] | None = None


class OverTasks(Part):
    """Method -> a mean over tasks that all methods have finished, of the seeds that all share."""

    tasks: list[str]
    methods: dict[str, float]


class PairedTest(Part):
    """A two-tailed paired t-test; p, t and dz are None, with a reason, where there is none.

    `p_holm` is corrected for all tests of a speed. In documents of version 1, p is one-tailed and
    corrected for tasks alone.
    """

    n: int
    difference: float | None
    p: float | None
    t: float | None
    dz: float | None
    reason: str | None = None
    p_holm: float | None = None


class MethodTests(Part):
    """The chosen method against another one, on each task and over tasks."""

    tasks: dict[str, PairedTest]
    over_tasks: PairedTest


class Latency(Document):
    """Milliseconds of one seed's exported models: method -> speed -> mean per text.

    Attributes:
        measured: of models of one speed, which answered texts.
        predicted: of models with exits, by a cost model of their profile; nothing was timed there.
    """

    FORMAT: ClassVar[str] = "de3bert-latency"
    VERSION: ClassVar[int] = 2
    WHAT: ClassVar[str] = "the timing of a study's models"

    task: str
    seed: int
    machine: str
    date: str
    measured: dict[str, dict[str, float]]
    predicted: dict[str, dict[str, float]]
    without: dict[str, str]

    @model_validator(mode="before")
    @classmethod
    def _told_apart(cls, document: Any) -> Any:
        """Version 1 has both in one table; what was measured there has a speed of its own.

        So has the oracle, whose times were predicted.
        """
        if not isinstance(document, dict) or "milliseconds" not in document:
            return document
        both = document["milliseconds"]
        measured = {name: t for name, t in both.items() if OWN in t and name != "oracle"}
        predicted = {name: times for name, times in both.items() if name not in measured}
        rest = {name: value for name, value in document.items() if name != "milliseconds"}
        return {**rest, "version": 2, "measured": measured, "predicted": predicted}


class StudyResult(Document):
    """`study.json`.

    Attributes:
        exits: task -> method -> layer -> mean score of everybody leaving there; `exit_sd` has
            deviations over seeds, where there are several.
        calibrated: wanted speed -> task -> method -> what its calibrated points give.
        steps: task -> method -> optimizer steps.
        older_scoring: methods with records from before lambda 0 was tried.
        paper_grid: whether lambda is chosen among the paper's weights, by the study's wish.
    """

    FORMAT: ClassVar[str] = "de3bert-study"
    VERSION: ClassVar[int] = 2
    WHAT: ClassVar[str] = "the result of a study"

    title: str
    command: str
    date: str
    versions: dict[str, str]
    machines: list[str]
    backbone: str
    progress: Progress
    speeds: list[float]
    methods: list[MethodFacts]
    tasks: list[TaskFacts]
    scores: BySpeed[Score]
    averages: dict[str, OverTasks]
    ranks: dict[str, OverTasks]
    tests: dict[str, dict[str, MethodTests]]
    significant_below: float
    areas: ByTask[AreaMean]
    points: ByTask[PointMean]
    curves: ByTask[CurveMean]
    exits: ByTask[dict[str, float]]
    exit_sd: ByTask[dict[str, float]] = Field(default={})
    base_depth: dict[str, int]
    calibrated: BySpeed[CalibratedMean]
    complete_tasks: list[str]
    chosen: str
    flops: ByTask[dict[str, float]]
    latency: Latency | None
    steps: ByTask[StepCount] = Field(default={})
    older_scoring: list[str] = Field(default=[])
    paper_grid: bool = False

    @property
    def withdrawn(self) -> dict[str, str]:
        """Method -> why its results do not count."""
        return {each.name: each.withdrawn for each in self.methods if each.withdrawn}
