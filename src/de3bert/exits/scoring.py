"""How answers are scored: single rows by counts of classes, tagged sentences by counts of each.

A score belongs to labels; a curve asks it once for the answers of every point, given as moves of
rows from one exit to another (`de3bert.exits.sweep`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.metrics import METRICS, Counts, check_metric, score, score_interval
from de3bert.exits.sentence_metrics import Tally, check_word_metric, ratio, tally
from de3bert.exits.trace import Trace

__all__ = ["Moves", "Scorer", "SentenceScorer", "running", "scorer", "scorer_of"]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
CHUNK = 1 << 20  # class counts held in memory at once


class Moves(NamedTuple):
    """Rows that move from one exit to another, in the order of a curve; every array is (events,).

    `row` is a text, or a sentence whose words move together.
    """

    value: Floats
    row: Integers
    source: Integers
    target: Integers

    @property
    def ends(self) -> NDArray[np.bool_]:
        """The last event of every value: after it there is a point."""
        return np.append(np.diff(self.value) > 0, True)[: len(self.value)]


class Scorer(ABC):
    """A metric and the labels that answers are held against."""

    @abstractmethod
    def score(self, answers: Integers) -> float:
        """Of one answer for each unit, (units,)."""

    @abstractmethod
    def interval(self, answers: Integers) -> tuple[float, float]:
        """Where the score would lie on other data of this size, at 95 %."""

    @abstractmethod
    def along(self, predictions: Integers, moves: Moves) -> Floats:
        """The score before all moves, then after each that is a point. (points,)

        Args:
            predictions: of every unit at every exit, (units, exits).
        """


class RowScorer(Scorer):
    """Rows that stand for themselves."""

    def __init__(self, metric: str, labels: Integers, classes: int) -> None:
        check_metric(metric, classes)
        self.metric, self.labels, self.classes = metric, labels, classes

    def score(self, answers: Integers) -> float:
        return score(self.metric, self.labels, answers, self.classes)

    def interval(self, answers: Integers) -> tuple[float, float]:
        return score_interval(self.metric, self.labels, answers, self.classes)

    def along(self, predictions: Integers, moves: Moves) -> Floats:
        return np.concatenate(list(self._along(predictions, moves)))

    def _along(self, predictions: Integers, moves: Moves) -> Iterator[Floats]:
        """Chunk by chunk."""
        metric, labels, classes, ends = METRICS[self.metric], self.labels, self.classes, moves.ends
        counts = Counts.of(labels, predictions[:, -1], classes)
        yield np.atleast_1d(metric(counts))
        chunk = max(1, CHUNK // classes)
        for start in range(0, len(moves.value), chunk):
            part = slice(start, start + chunk)
            before = predictions[moves.row[part], moves.source[part]]
            after = predictions[moves.row[part], moves.target[part]]
            actual = labels[moves.row[part]]
            predicted = counts.predicted[None] + _running(before, after, classes)
            hits = counts.hits[None] + _running(
                np.where(before == actual, before, -1),
                np.where(after == actual, after, -1),
                classes,
            )
            points = ends[part]
            yield metric(Counts(counts.rows, counts.actual, predicted[points], hits[points]))
            counts = Counts(counts.rows, counts.actual, predicted[-1], hits[-1])


class SentenceScorer(Scorer):
    """Units that belong to sentences; an answer of -1 is none, and wrong."""

    def __init__(
        self, metric: str, labels: Integers, names: Sequence[str], sentence: Integers
    ) -> None:
        check_word_metric(metric, names)
        self.metric = metric
        self.names = np.array([*names, None], dtype=object)  # the last is no answer
        self.borders = np.flatnonzero(np.diff(sentence)) + 1
        self.actual = self._named(labels)

    def _named(self, answers: Integers) -> list[list[str]]:
        return [part.tolist() for part in np.split(self.names[answers], self.borders)]

    def tally(self, answers: Integers) -> Tally:
        """The counts of each sentence."""
        return tally(self.actual, self._named(answers), self.metric)

    def score(self, answers: Integers) -> float:
        return self.tally(answers).score()

    def interval(self, answers: Integers) -> tuple[float, float]:
        return self.tally(answers).interval()

    def along(self, predictions: Integers, moves: Moves) -> Floats:
        each = [self.tally(answers) for answers in predictions.T]
        hits = running([exit_.hits for exit_ in each], moves)
        return ratio(hits, running([exit_.given + exit_.there for exit_ in each], moves))


def running(per_exit: Sequence[NDArray[Any]], moves: Moves) -> NDArray[Any]:
    """The sum over rows before all moves, then after each that is a point. (points,)

    Args:
        per_exit: what a row adds when it leaves at each exit, (rows,) each.
    """
    values = np.stack(per_exit, axis=1)
    change = values[moves.row, moves.target] - values[moves.row, moves.source]
    full = values[:, -1].sum()
    return np.append(full, full + np.cumsum(change)[moves.ends])


def scorer(
    metric: str, labels: Integers, names: Sequence[str], sentence: Integers | None = None
) -> Scorer:
    """How answers to these units are scored.

    Args:
        sentence: of every unit the number of its sentence; None where units stand for themselves.
    """
    if sentence is None:
        return RowScorer(metric, labels, len(names))
    return SentenceScorer(metric, labels, names, sentence)


def scorer_of(trace: Trace, metric: str) -> Scorer:
    """How answers to the units of a trace are scored."""
    return scorer(metric, trace.known_labels, trace.label_names, trace.sentence)


def _running(minus: Integers, plus: Integers, classes: int) -> Integers:
    """Running sums of one class less and one class more per event; -1 is no class.

    (events,), (events,) -> (events, classes)
    """
    change = np.zeros((len(minus), classes + 1), dtype=np.int64)  # -1 falls into the extra column
    events = np.arange(len(minus))
    change[events, minus] -= 1
    change[events, plus] += 1
    return np.cumsum(change[:, :classes], axis=0)
