"""Tagged sentences through a model of words: scores at a policy, and operating points."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from de3bert.data.labels import LabelSet
from de3bert.data.words import WordTable
from de3bert.errors import UsageError
from de3bert.exits import OperatingPoint
from de3bert.exits.adequacy import check_rows, doubts, with_warnings
from de3bert.exits.calibrate import LAMBDA_GRID, WIDE_LAMBDA_GRID
from de3bert.exits.cost import exit_histogram
from de3bert.exits.points import Target
from de3bert.exits.spans import has_spans, span_f1
from de3bert.exits.word_curve import calibrate_words, check_metric, tally
from de3bert.exits.word_replay import WordTrace
from de3bert.exits.words import WordPolicy
from de3bert.machine import versions
from de3bert.methods import METHODS
from de3bert.progress import track
from de3bert.runtime.facts import Facts
from de3bert.runtime.load import load, read_config
from de3bert.runtime.loaded import FULL, no_such_point
from de3bert.runtime.points import check_place, check_point_name, store_points
from de3bert.runtime.words import TaggedSentence, WordClassifier

__all__ = [
    "WordEvaluation",
    "calibrate_word_model",
    "check_word_request",
    "evaluate_words",
    "is_word_model",
    "load_words",
]


WINDOW = 16  # batches between two signs of progress


@dataclass(frozen=True)
class WordEvaluation:
    """Scores of one policy on tagged sentences, with what it cost.

    `layers_mean` counts the layers of a mean piece of a word; `sentence_layers_mean` those that
    were run for a mean sentence: with words that halt one by one the last of them decides.
    """

    point: str | None
    policy: str
    rows: int  # words
    sentences: int
    truncated: int
    metric: str
    score: float
    score_interval: tuple[float, float]
    scores: dict[str, float]
    layers_mean: float
    layer_speedup: float
    sentence_layers_mean: float
    exit_histogram: dict[int, int]  # words
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "exit_histogram": {str(k): v for k, v in self.exit_histogram.items()}}


def is_word_model(model: str | Path) -> bool:
    """Whether a folder holds a model of words; a hub id cannot be told before it is loaded."""
    path = Path(model) / "config.json"
    return path.exists() and read_config(model).get("token_exits") == "words"


def load_words(
    model: str | Path, threads: int | None = None, backend: str | None = None
) -> WordClassifier:
    """A model of words, or a UsageError when the model classifies texts."""
    loaded = cast(object, load(model, threads=threads, backend=backend))
    if not isinstance(loaded, WordClassifier):
        raise UsageError(f"{model} classifies texts, and this is for a model that tags words.")
    return loaded


def check_word_request(
    model: str | Path, table: WordTable, point: str | None, policy: str | None, metric: str | None
) -> None:
    """Says what is wrong with an evaluation before the model is loaded, which takes seconds."""
    facts = Facts.of(read_config(model))
    check_metric(metric or facts.metric, facts.label_names)
    if policy is not None:
        WordPolicy.parse(policy)
    _numbers(facts, table)
    if point is not None and point not in (FULL, *facts.operating_points):
        raise no_such_point(model, point, facts.operating_points)


def evaluate_words(
    classifier: WordClassifier,
    table: WordTable,
    *,
    point: str | None = None,
    policy: str | WordPolicy | None = None,
    metric: str | None = None,
    batch_size: int = 32,
    progress: str | None = None,
) -> WordEvaluation:
    """Tags with real stopping and scores the answers; a word that was cut off counts as wrong."""
    metric = metric or str(classifier.config.metric)
    check_metric(metric, classifier.label_names)
    chosen = classifier.policy(point, policy)
    numbers = _numbers(classifier.config, table)
    actual = [[classifier.label_names[number] for number in row] for row in numbers]
    start = time.perf_counter()
    answers, cut = [], 0
    sentences, size = table.inputs(), WINDOW * batch_size
    for first in track(range(0, len(sentences), size), progress):
        part = sentences[first : first + size]
        answers += classifier.predict(part, policy=chosen, batch_size=batch_size)
        cut += classifier.truncated
    seconds = time.perf_counter() - start
    given = [answer.tags for answer in answers]
    counts = tally(actual, given, metric)
    layers, mean, longest = _cost(answers)
    return WordEvaluation(
        point=classifier.point_name(point) if policy is None else None,
        policy=str(chosen),
        rows=sum(len(tags) for tags in actual),
        sentences=len(table),
        truncated=cut,
        metric=metric,
        score=float(counts.score()),
        score_interval=counts.interval(),
        scores=_scores(actual, given, classifier.label_names),
        layers_mean=mean,
        layer_speedup=classifier.config.base_depth / mean,
        sentence_layers_mean=longest,
        exit_histogram=exit_histogram(layers, classifier.backend.exit_layers),
        seconds=seconds,
    )


def calibrate_word_model(
    folder: str | Path,
    target: str,
    name: str,
    *,
    table: WordTable | None,
    family: str | None = None,
    wide: bool = False,
    metric: str | None = None,
    default: bool = False,
    batch_size: int = 32,
    progress: str | None = None,
    force: bool = False,
    backend: str | None = None,
) -> OperatingPoint:
    """Finds the SENTEE policy that meets `target` on tagged sentences, and stores it.

    Fewer than 30 sentences, or sentences without some tag of the model, are refused unless `force`
    is set or nothing is to be chosen (`full`). Doubts are kept in `measured["warnings"]`.
    """
    if table is None:
        raise UsageError("A model of words is calibrated on tagged sentences: give --data FILE.")
    wanted = Target.parse(target)
    check_point_name(name)
    check_place(folder)
    facts = Facts.of(read_config(folder))
    metric = metric or facts.metric
    check_metric(metric, facts.label_names)
    tags = np.array([tag for row in _numbers(facts, table) for tag in row], dtype=np.int64)
    force = force or wanted.kind == "full"
    forced = check_rows(tags, facts.label_names, force=force, rows=len(table), unit="sentences")
    words = trace_sentences(load_words(folder, backend=backend), table, batch_size, progress)
    point = calibrate_words(
        words,
        wanted,
        name=name,
        family=family or METHODS[facts.method].signal,
        lambdas=WIDE_LAMBDA_GRID if wide else LAMBDA_GRID,
        metric=metric,
    )
    found = doubts(point.measured, words.trace.known_labels, words.trace.predictions[:, -1])
    point = with_warnings(point, [*forced, *found])
    store_points(folder, [point], default=name if default else None)
    return point


def trace_sentences(
    classifier: WordClassifier,
    table: WordTable,
    batch_size: int = 32,
    progress: str | None = None,
) -> WordTrace:
    """A labelled trace of tagged sentences that says what made it."""
    info: dict[str, Any] = {
        "data": {"source": table.source, "sha256": table.sha256, "rows": len(table)},
        "weights": classifier.weights_sha256,
        "max_length": classifier.config.max_length,
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    numbers = _numbers(classifier.config, table)
    words = classifier.trace(
        table.inputs(), numbers, batch_size=batch_size, info=info, progress=progress
    )
    words.trace.info["data"]["truncated"] = classifier.truncated
    return words


def _numbers(facts: Facts, table: WordTable) -> list[list[int]]:
    """The tags of each sentence as the model numbers them; one unseen in training is refused."""
    tags = table.known_tags
    classes = LabelSet(facts.label_names, positions=facts.numbered_labels)
    flat = iter(classes.encode((tag for row in tags for tag in row), table.label_names).tolist())
    return [list(itertools.islice(flat, len(row))) for row in tags]


def _cost(answers: Sequence[TaggedSentence]) -> tuple[NDArray[np.int64], float, float]:
    """The layers of each word, (words,), of a mean piece, and of a mean sentence."""
    known = [np.array([m for m in each.exit_layers if m is not None]) for each in answers]
    pieces = np.array([p for each in answers for p in each.pieces if p is not None])
    layers = np.concatenate(known)
    mean = float((layers * pieces).sum() / pieces.sum())
    return layers, mean, float(np.mean([each.max() for each in known]))


def _scores(
    actual: Sequence[Sequence[str]], given: Sequence[Sequence[str | None]], names: Sequence[str]
) -> dict[str, float]:
    scores = {"accuracy": float(tally(actual, given, "accuracy").score())}
    if has_spans(names):
        found = span_f1(actual, given)
        scores |= {f"span_{name}": value for name, value in found.items()}
    return scores
