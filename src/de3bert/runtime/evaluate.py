"""Labelled rows through a classifier: traces for calibration, scores at a point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.labels import LabelSet
from de3bert.data.table import Table
from de3bert.data.tokens import TextInput
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace
from de3bert.exits.cost import exit_histogram, layer_speedup, layers_mean
from de3bert.exits.metrics import METRICS, check_metric, per_class, score, score_interval
from de3bert.machine import versions
from de3bert.progress import track
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.facts import Facts
from de3bert.runtime.load import read_config
from de3bert.runtime.loaded import FULL, no_such_point

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

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "exit_histogram": {str(k): v for k, v in self.exit_histogram.items()}}


def class_numbers(classifier: Classifier, table: Table) -> NDArray[np.int64]:
    """A table's labels as the model numbers its classes; one unseen in training is refused."""
    return numbers_of(classifier.config, table)


def numbers_of(facts: Facts, table: Table) -> NDArray[np.int64]:
    """The same for a model that is not loaded yet."""
    if table.labels is None:
        raise UsageError(f"{table.source} has no label column; scores need labels (--label NAME).")
    classes = LabelSet(facts.label_names, positions=facts.numbered_labels)
    return classes.encode(table.labels, names=table.label_names)


def check_request(
    model: str | Path, table: Table, point: str | None, policy: str | None, metric: str | None
) -> None:
    """Says what is wrong with an evaluation before the model is loaded, which takes seconds.

    Of a hub id only what does not concern the model is checked.
    """
    if metric is not None:
        METRICS[metric]
    if policy is not None:
        Policy.parse(policy)
    if not (Path(model) / "config.json").is_file():
        return
    facts = Facts.of(read_config(model))
    check_metric(metric or facts.metric, len(facts.label_names))
    numbers_of(facts, table)
    if point is not None and point not in (FULL, *facts.operating_points):
        raise no_such_point(model, point, facts.operating_points)


def trace_table(
    classifier: Classifier, table: Table, *, batch_size: int = 32, progress: str | None = None
) -> Trace:
    """A trace of a table's rows, labelled when the table is, that says what made it."""
    labels = class_numbers(classifier, table) if table.labels is not None else None
    info: dict[str, Any] = {
        "data": {"source": table.source, "sha256": table.sha256, "rows": len(table)},
        "weights": classifier.weights_sha256,
        "max_length": classifier.config.max_length,
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if (per_token := token_layers_mean(classifier, table)) is not None:
        info["token_layers_mean"] = per_token
    trace = classifier.trace(
        table.inputs(), labels, batch_size=batch_size, info=info, progress=progress
    )
    trace.info["data"]["truncated"] = classifier.truncated
    return trace


def token_layers_mean(classifier: Classifier, table: Table) -> float | None:
    """Layers per token of a model whose tokens stop one by one; None for all others."""
    layers = getattr(classifier.backend, "token_layers", None)
    if layers is None:
        return None
    return float(layers.mean([row["input_ids"] for row in classifier.encode(table.inputs())]))


def evaluate(
    classifier: Classifier,
    table: Table,
    *,
    point: str | None = None,
    policy: str | Policy | None = None,
    metric: str | None = None,
    batch_size: int = 32,
    progress: str | None = None,
) -> Evaluation:
    """Predicts with real stopping and scores the answers, by default with the model's metric.

    A bandit goes on learning from where the classifier's earlier calls have left it.
    """
    metric = metric or str(classifier.config.metric)
    check_metric(metric, len(classifier.label_names))
    chosen = classifier.policy(point, policy)
    labels = class_numbers(classifier, table)
    start = time.perf_counter()
    # In a stream, because that is read as it is answered, which shows how far it is.
    rows: Sequence[TextInput] = table.inputs()
    inputs = track(rows, progress)
    answers = list(classifier.predict_iter(inputs, policy=chosen, batch_size=batch_size))
    seconds = time.perf_counter() - start
    number = {name: index for index, name in enumerate(classifier.label_names)}
    predicted = np.array([number[answer.label] for answer in answers])
    layers = np.array([answer.exit_layer for answer in answers])
    classes = len(classifier.label_names)
    names = [name for name in METRICS if classes == 2 or name != "f1"]
    per_token, base = token_layers_mean(classifier, table), classifier.config.base_depth
    return Evaluation(
        point=classifier.point_name(point) if policy is None else None,
        policy=str(chosen),
        rows=len(table),
        truncated=classifier.truncated,
        metric=metric,
        score=score(metric, labels, predicted, classes),
        score_interval=score_interval(metric, labels, predicted, classes),
        scores={name: score(name, labels, predicted, classes) for name in names},
        per_class=per_class(labels, predicted, classifier.label_names),
        layers_mean=layers_mean(layers),
        layer_speedup=layer_speedup(layers, base),
        exit_histogram=exit_histogram(layers, classifier.backend.exit_layers),
        seconds=seconds,
        token_layers_mean=per_token,
        token_layer_speedup=None if per_token is None else base / per_token,
    )
