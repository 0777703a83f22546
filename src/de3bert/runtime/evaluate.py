"""Labelled rows through a classifier: traces for calibration, scores at a point."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.labels import LabelSet
from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import Policy, Target, Trace
from de3bert.exits.layer_speedup import (
    beyond,
    exit_histogram,
    layer_speedup,
    layer_speedup_interval,
    layers_mean,
)
from de3bert.exits.metrics import per_class
from de3bert.exits.scoring import scorer
from de3bert.machine import versions
from de3bert.progress import track
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import read_config
from de3bert.runtime.loaded import FULL, no_such_point
from de3bert.runtime.model_info import ModelInfo
from de3bert.tasks import TASKS

__all__ = [
    "Evaluation",
    "check_request",
    "class_numbers",
    "evaluate",
    "numbers_of",
    "token_layers_mean",
    "trace_table",
]


@dataclass(frozen=True)
class Evaluation:
    """Scores of one policy on labelled rows, with what it cost.

    The layer speed-up refers to the model's `base_depth`: its own depth, unless it was cut or put
    together from several. Where single tokens stop, `token_layers_mean` and `token_layer_speedup`
    count layers per token and not per text; the two kinds of ratio do not compare.

    Of a tagger the rows are words, in so many `sentences`; `layers_mean` counts the layers of a
    mean piece of a word, `sentence_layers_mean` those that were run for a mean sentence: with words
    that halt one by one the last of them decides.

    `target` is what the point was calibrated for, `wanted_layer_speedup` the ratio of layers in it,
    where it is one; `layer_speedup_interval` says where the ratio would lie on other such rows.
    """

    point: str | None
    policy: str
    rows: int
    truncated: int
    metric: str
    score: float
    score_interval: tuple[float, float]
    scores: dict[str, float]
    per_class: list[dict[str, Any]]
    layers_mean: float
    layer_speedup: float
    exit_histogram: dict[int, int]
    seconds: float
    token_layers_mean: float | None = None
    token_layer_speedup: float | None = None
    sentences: int | None = None
    sentence_layers_mean: float | None = None
    layer_speedup_interval: tuple[float, float] | None = None
    target: str | None = None
    wanted_layer_speedup: float | None = None

    @property
    def off_target(self) -> bool:
        """Whether the wanted ratio of layers lies outside the interval of the one there is."""
        wanted = self.wanted_layer_speedup
        return wanted is not None and beyond(wanted, self.layer_speedup_interval)

    def to_json(self) -> dict[str, Any]:
        more = {"off_target": self.off_target}
        return {
            **vars(self),
            **more,
            "exit_histogram": {str(k): v for k, v in self.exit_histogram.items()},
        }


def class_numbers(classifier: Classifier[Any], table: Table[Any]) -> NDArray[np.int64]:
    """The labels of a table's units as the model numbers its classes, (units,).

    One that is unseen in training is refused.
    """
    return classifier.task.unit_numbers(numbers_of(classifier.info, table))


def numbers_of(info: ModelInfo, table: Table[Any]) -> Any:
    """The same for a model that is not loaded yet, with an entry for each row (`Task.numbers`)."""
    classes = LabelSet(info.label_names, positions=info.numbered_labels)
    return TASKS[info.task].numbers(classes, table)


def check_request(
    model: str | Path, table: Table[Any], point: str | None, policy: str | None, metric: str | None
) -> None:
    """Says what is wrong with an evaluation before the model is loaded, which takes seconds.

    Of a hub id only what does not concern the model is checked.
    """
    if not (Path(model) / "config.json").is_file():
        if policy is not None:
            Policy.parse(policy)
        return
    info = ModelInfo.of(read_config(model))
    task = TASKS[info.task]
    if policy is not None:
        task.policy(policy)
    task.check_metric(metric or info.metric, info.label_names)
    numbers_of(info, table)
    if point is not None and point not in (FULL, *info.operating_points):
        raise no_such_point(model, point, info.operating_points)


def trace_table(
    classifier: Classifier[Any],
    table: Table[Any],
    *,
    batch_size: int = 32,
    progress: str | None = None,
) -> Trace:
    """A trace of a table's rows, labelled when the table is, that says what made it."""
    labels = numbers_of(classifier.info, table) if table.labels is not None else None
    info: dict[str, Any] = {
        "data": {"source": table.source, "sha256": table.sha256, "rows": len(table)},
        "weights": classifier.weights_sha256,
        "max_length": classifier.info.max_length,
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if (per_token := token_layers_mean(classifier, table)) is not None:
        info["token_layers_mean"] = per_token
    trace = classifier.trace(
        table.inputs(), labels, batch_size=batch_size, info=info, progress=progress
    )
    trace.info["data"]["truncated"] = trace.info["truncated"]
    return trace


def token_layers_mean(classifier: Classifier[Any], table: Table[Any]) -> float | None:
    """Layers per token of a model whose tokens stop one by one; None for all others."""
    layers = getattr(classifier.backend, "token_layers", None)
    if layers is None:
        return None
    return float(layers.mean([row["input_ids"] for row in classifier.encode(table.inputs()).rows]))


def evaluate(
    classifier: Classifier[Any],
    table: Table[Any],
    *,
    point: str | None = None,
    policy: str | Policy | None = None,
    metric: str | None = None,
    batch_size: int = 32,
    progress: str | None = None,
) -> Evaluation:
    """Predicts with real stopping and scores the answers, by default with the model's metric.

    A bandit goes on learning from where the classifier's earlier calls have left it. A word that
    was cut off counts as wrong.
    """
    task, names = classifier.task, classifier.label_names
    metric = metric or classifier.info.metric
    task.check_metric(metric, names)
    chosen = classifier.policy(point, policy)
    numbers = numbers_of(classifier.info, table)
    start = time.perf_counter()
    # In a stream, because that is read as it is answered, which shows how far it is.
    inputs = track(table.inputs(), progress)
    answers = list(classifier.predict_iter(inputs, policy=chosen, batch_size=batch_size))
    seconds = time.perf_counter() - start
    found = task.answered(answers, names)
    labels, sentence = task.unit_numbers(numbers), task.sentence_of(numbers)
    scored = scorer(metric, labels, names, sentence)
    per_token, base = token_layers_mean(classifier, table), classifier.info.base_depth
    name = classifier.point_name(point) if policy is None else None
    target = classifier.points[name].target if name in classifier.points else None
    return Evaluation(
        point=name,
        policy=str(chosen),
        rows=len(labels),
        truncated=sum(answer.truncated for answer in answers),
        metric=metric,
        score=scored.score(found.labels),
        score_interval=scored.interval(found.labels),
        scores=task.scores(labels, found.labels, names, sentence),
        per_class=_per_class(labels, found.labels, names),
        layers_mean=layers_mean(found.exit_layers, found.weights),
        layer_speedup=layer_speedup(found.exit_layers, base, found.weights),
        exit_histogram=exit_histogram(found.exit_layers, classifier.backend.exit_layers),
        seconds=seconds,
        token_layers_mean=per_token,
        token_layer_speedup=None if per_token is None else base / per_token,
        sentences=None if sentence is None else len(table),
        sentence_layers_mean=None if sentence is None else layers_mean(found.row_layers),
        layer_speedup_interval=layer_speedup_interval(
            found.exit_layers, base, found.weights, found.row_of
        ),
        target=target,
        wanted_layer_speedup=_wanted_ratio(target),
    )


def _wanted_ratio(target: str | None) -> float | None:
    """The ratio of layers that a target asks for; None where it asks for something else."""
    if target is None:
        return None
    try:
        wanted = Target.parse(target)
    except UsageError:  # of a later version, say
        return None
    return wanted.value if wanted.kind == "layers" else None


def _per_class(
    labels: NDArray[np.int64], answers: NDArray[np.int64], names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """`per_class` where an answer may be -1, none: that is a class that nobody asked for."""
    given = np.where(answers < 0, len(names), answers)
    return per_class(labels, given, [*names, ""])[: len(names)]
