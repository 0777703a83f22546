"""The result of a study: what was compared, how far it is, and all aggregated numbers.

Most tables go by layer speed-up (as `2.5`), task and method, in this order.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias, TypeVar

from de3lab.documents.document import Document, Part
from de3lab.documents.run import CurvePoints

__all__ = ["Latency", "Mean", "MethodFacts", "Score", "StudyResult", "TaskFacts"]

Value = TypeVar("Value")
ByTask: TypeAlias = dict[str, dict[str, Value]]  # task -> method -> value
BySpeed: TypeAlias = dict[str, ByTask[Value]]


class Progress(Part):
    done: int
    of: int
    missing: list[str]


class MethodFacts(Part):
    """A compared method; one that is not `ranked` (the oracle) is shown and never tested."""

    name: str
    group: str
    summary: str
    citation: str
    ranked: bool
    training: str


class TaskFacts(Part):
    """A task; `rows` is None while nothing of it is finished."""

    name: str
    metric: str
    metrics: list[str]
    test: str
    seeds: list[int]
    rows: dict[str, int] | None


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
    layer_speedup: float


class AreaMean(Mean):
    low: float
    high: float
    whole: bool


class CurveMean(CurvePoints):
    n: int


class OverTasks(Part):
    """Method -> a mean over tasks that all methods have finished."""

    tasks: list[str]
    methods: dict[str, float]


class PairedTest(Part):
    """A one-tailed paired t-test; p, t and dz are None, with a reason, where there is none."""

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
    """Milliseconds of one seed's exported models: method -> speed -> mean per text."""

    FORMAT: ClassVar[str] = "de3bert-latency"
    WHAT: ClassVar[str] = "the timing of a study's models"

    task: str
    seed: int
    machine: str
    date: str
    milliseconds: dict[str, dict[str, float]]
    without: dict[str, str]


class StudyResult(Document):
    """`study.json`."""

    FORMAT: ClassVar[str] = "de3bert-study"
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
    base_depth: dict[str, int]
    calibrated: BySpeed[PointMean]
    complete_tasks: list[str]
    chosen: str
    flops: ByTask[dict[str, float]]
    latency: Latency | None
