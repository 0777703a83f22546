"""The record of one run: what was trained, from what, by which command, and what it scored.

Keys of speeds are layer speed-ups as `2.5`, keys of exits are layers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from de3lab.documents.document import Document, Part

__all__ = ["FlopCounts", "MethodScores", "RunRecord", "ScoredAs", "TestScores"]


class TrainingRecord(Part):
    """What the training said of itself."""

    seconds: float = 0.0
    steps: int = 0
    phases: list[dict[str, Any]] | None = None
    notes: list[str] | None = None


class FlopCounts(Part):
    """Operations of one text, by part of the model; `exits` has one count for each exit."""

    tokens: float
    embedding: float
    layer: float
    layer_with_attention: float
    exits: list[float]


class ScoredAs(Part):
    """What a run is scored by; scores of other speeds, metrics or methods are computed again.

    Attributes:
        scoring: the version of the way scores are made (`de3lab.study.record`).
        paper_grid: whether lambda was chosen among the paper's weights, without 0.
    """

    scoring: int
    paper_grid: bool = False
    methods: list[str]
    metrics: list[str]
    speeds: list[float]
    tests: list[str]


class Choice(Part):
    """What calibration rows choose for a speed."""

    family: str
    calibration_score: float
    policy: str | None


class SpeedScore(Part):
    """The mean score and each metric at a speed, by the family chosen for it."""

    score: float
    each: dict[str, float]
    family: str


class PointScore(Part):
    """The score of a model that has one speed."""

    score: float
    each: dict[str, float]
    layer_speedup: float


class AreaScore(Part):
    """The mean score from `low` to `high`; `whole` where that is the range asked for."""

    score: float
    low: float
    high: float
    family: str
    whole: bool


class CurvePoints(Part):
    layer_speedup: list[float]
    score: list[float]


class CalibratedScore(Part):
    """What the policy that calibration rows chose gives on test rows.

    Attributes:
        layer_speedup_interval: 95 %, over rows; None in records from before it was stored.
    """

    policy: str
    score: float
    score_interval: list[float] | None
    layer_speedup: float
    layer_speedup_interval: list[float] | None = None
    layers_mean: float
    each: dict[str, float]
    interval_of: str


class TestScores(Part):
    """One method on one test file."""

    __test__: ClassVar[bool] = False  # the name is no test of pytest's

    rows: int
    at: dict[str, SpeedScore | None]
    area: AreaScore | None
    point: PointScore | None
    curve: CurvePoints | None
    calibrated: dict[str, CalibratedScore | None]
    exit_scores: dict[str, float]
    exit_accuracy: dict[str, float]


class MethodScores(Part):
    """All numbers of one method on one run."""

    method: str
    temperatures: list[float] | None = None
    choices: dict[str, Choice | None]
    tests: dict[str, TestScores]


class RunRecord(Document):
    """One finished run, scored.

    Attributes:
        revision: of the method at that time; results of older ones are withdrawn
            (`de3lab.study.revisions`).
        pooling: what the model's exits read, as it was built; None in older records, whose models
            were built with the pooling of the settings.
    """

    FORMAT: ClassVar[str] = "de3bert-run"
    WHAT: ClassVar[str] = "the record of a run"

    key: str
    task: str
    training: str
    revision: int = 1
    seed: int
    teacher: str | None
    command: str
    machine: str
    versions: dict[str, str]
    date: str
    backbone: str
    pooling: str | None = None
    settings: dict[str, Any]
    sha256: dict[str, str]
    rows: dict[str, int]
    training_record: TrainingRecord
    exit_layers: list[int]
    base_depth: int
    label_names: list[str]
    exit_accuracy: dict[str, float]
    parameters: dict[str, int]
    flops: FlopCounts | None
    scored_as: ScoredAs
    methods: dict[str, MethodScores]

    @property
    def built_pooling(self) -> str | None:
        """What the exits of the model read, as far as it is known."""
        asked: str | None = self.settings.get("pooling")
        return self.pooling or asked

    @property
    def identity(self) -> tuple[str, str, int]:
        return self.task, self.training, self.seed
