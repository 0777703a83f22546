"""Scores, exact curves and operating points of the SENTEE rule on a trace of words.

A score here is a ratio of counts that add up over sentences, 2 hits / (given + there): entities for
`span_f1`, and words for `accuracy`, where as many are given as there are. When the threshold passes
a value, whole sentences move from one exit to another; running sums over those moves give every
point of the curve exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError
from de3bert.exits.calibrate import LAMBDA_GRID, families_of
from de3bert.exits.choose import choose
from de3bert.exits.cost import exit_histogram
from de3bert.exits.curve import Curve
from de3bert.exits.family import Family
from de3bert.exits.points import OperatingPoint, Target
from de3bert.exits.policy import Policy
from de3bert.exits.rules import Full
from de3bert.exits.signal import Signal
from de3bert.exits.spans import has_spans, span_counts
from de3bert.exits.sweep import find_moves
from de3bert.exits.sweep import windowed as in_a_row
from de3bert.exits.word_replay import WordTrace, replay_words, sentence_matrix
from de3bert.exits.words import Over, WordPolicy
from de3bert.registry import Registry

__all__ = ["WORD_METRICS", "Tally", "calibrate_words", "tally", "word_cost", "word_curve"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
RESAMPLES = 1000  # of the sentences, for an interval


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of every sentence; leading axis sentences, further axes exits or nothing."""

    hits: Integers
    given: Integers
    there: Integers

    def score(self) -> Floats:
        """The score over all sentences, for each of the further axes."""
        return ratio(self.hits.sum(axis=0), self.given.sum(axis=0) + self.there.sum(axis=0))

    def at(self, exit_index: Integers) -> Tally:
        """The counts of each sentence at the exit it took. (sentences, exits) -> (sentences,)"""
        rows = np.arange(len(exit_index))
        return Tally(*(each[rows, exit_index] for each in (self.hits, self.given, self.there)))

    def interval(self, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
        """Where the score would lie on other sentences: bootstrap over sentences, not words.

        Words of one sentence hang together, so that an interval over words would be too narrow.
        """
        rows = len(self.hits)
        weights = np.random.default_rng(seed).multinomial(
            rows, np.full(rows, 1 / rows), size=RESAMPLES
        )
        scores = ratio(weights @ self.hits, weights @ self.given + weights @ self.there)
        low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def ratio(hits: Integers, both: Integers) -> Floats:
    return np.asarray(np.where(both > 0, 2 * hits, 0) / np.where(both > 0, both, 1))


# Each: true tags and answers of one sentence -> hits, given, there.
Count = Callable[[Sequence[str | None], Sequence[str | None]], tuple[int, int, int]]
WORD_METRICS: Registry[Count] = Registry("metric of words")
WORD_METRICS.add("span_f1", span_counts)


@WORD_METRICS.register("accuracy")
def right_words(actual: Sequence[str | None], given: Sequence[str | None]) -> tuple[int, int, int]:
    """Words with the right tag; a word without an answer is wrong."""
    hits = sum(mine == true for mine, true in zip(given, actual, strict=True))
    return hits, len(actual), len(actual)


def check_metric(metric: str, tags: Sequence[str]) -> None:
    """Refuses an unknown metric, and entities where tags do not name any."""
    WORD_METRICS[metric]
    if metric == "span_f1" and not has_spans(tags):
        raise UsageError(
            f"span_f1 counts entities, which takes tags such as B-PER, I-PER and O; here they are "
            f"{', '.join(tags[:8])}. Use accuracy."
        )


def tally(actual: Sequence[Sequence[str]], given: Sequence[Any], metric: str) -> Tally:
    """Counts of each sentence, from true tags and answers by name. -> (sentences,) each"""
    count = WORD_METRICS[metric]
    rows = [count(true, mine) for true, mine in zip(actual, given, strict=True)]
    return Tally(*np.asarray(rows, dtype=np.int64).T)


def trace_tally(words: WordTrace, metric: str) -> Tally:
    """Counts of each sentence at each exit, (sentences, exits) each."""
    trace = words.trace
    check_metric(metric, trace.label_names)
    names = np.asarray(trace.label_names, dtype=object)
    borders = np.flatnonzero(np.diff(words.sentence)) + 1
    actual = [part.tolist() for part in np.split(names[trace.known_labels], borders)]
    columns = [
        tally(actual, [part.tolist() for part in np.split(names[said], borders)], metric)
        for said in trace.predictions.T
    ]
    return Tally(
        *(
            np.stack([getattr(one, field) for one in columns], axis=1)
            for field in ("hits", "given", "there")
        )
    )


def word_cost(words: WordTrace, exit_layers: Integers) -> float:
    """Mean layers that a piece of a word went through: a word counts once for each piece."""
    pieces = words.trace.tokens.astype(np.int64)
    return float((pieces * exit_layers).sum() / pieces.sum())


def word_curve(
    words: WordTrace,
    family: str | Signal | Family,
    metric: str = "accuracy",
    over: Over = "max",
) -> Curve:
    """Every distinct point that the SENTEE rule reaches, exactly.

    The curve's rows are words, its layers those of a mean piece. There is no such curve of TOKEE:
    a halted word changes what its neighbours read, so each threshold has to be run.
    """
    family = Family.of(family)
    if family.kind != "threshold" or family.signal is None:
        raise UsageError(f"`{family}` is not for words; use a signal such as `entropy` or `edr`.")
    trace, counts = words.trace, trace_tally(words, metric)
    moves = find_moves(in_a_row(sentence_matrix(words, family.signal, over), family.count))
    last = np.append(np.diff(moves.value) > 0, True)[: len(moves.value)]
    pieces = np.bincount(words.sentence, weights=trace.tokens)
    layer = np.asarray(trace.exit_layers, dtype=np.float64)

    def running(values: NDArray[Any]) -> Floats:
        """The sum of (sentences, exits) before all moves, then after each that is a point."""
        change = values[moves.row, moves.target] - values[moves.row, moves.source]
        full = values[:, -1].sum()
        return np.append(full, full + np.cumsum(change)[last])

    both = running(counts.given) + running(counts.there)
    return Curve(
        str(family),
        metric,
        trace.rows,
        trace.depth,
        _thresholds(moves.value[last], family.signal),
        running(pieces[:, None] * layer) / pieces.sum(),
        ratio(running(counts.hits).astype(np.int64), both.astype(np.int64)),
        base_depth=trace.base_depth,
    )


def calibrate_words(
    words: WordTrace,
    target: str | Target,
    *,
    name: str,
    family: str | None = None,
    lambdas: Sequence[float] = LAMBDA_GRID,
    metric: str = "accuracy",
) -> OperatingPoint:
    """The SENTEE policy (largest signal of the words) that meets `target` on this trace."""
    target = Target.parse(target) if isinstance(target, str) else target
    if target.is_time:
        raise UsageError(f"The target {target} is about time; words models have no profile yet.")
    policy = Policy(Full())
    if target.kind != "full":
        families = families_of(words.trace, family, lambdas)
        curves = [word_curve(words, each, metric) for each in families]
        policy = choose(curves, target, float(curves[0].score[0])).policy
    return OperatingPoint(name, policy, str(target), measure_words(words, policy, metric))


def measure_words(words: WordTrace, policy: Policy, metric: str) -> dict[str, Any]:
    """What a SENTEE policy gives on a labelled trace, in plain JSON values. Rows are words."""
    trace, answer = words.trace, replay_words(words, WordPolicy(policy))
    counts = trace_tally(words, metric)
    firsts = np.flatnonzero(np.append(True, np.diff(words.sentence) > 0))
    taken = counts.at(answer.exit_index[firsts])
    histogram = exit_histogram(answer.exit_layers, trace.exit_layers)
    layers = word_cost(words, answer.exit_layers)
    return {
        "rows": trace.rows,
        "sentences": words.sentences,
        "metric": metric,
        "score": float(taken.score()),
        "score_interval": list(taken.interval()),
        "full_score": float(counts.score()[-1]),
        "layers_mean": layers,
        "layer_speedup": trace.base / layers,
        "exit_histogram": {str(layer): count for layer, count in histogram.items()},
        "data": trace.info.get("data"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _thresholds(values: Floats, signal: Signal) -> Floats:
    """A threshold for no exit, then one in the middle above each value."""
    sign = -1.0 if signal.rising else 1.0
    if not values.size:
        return np.asarray([0.0 if signal.kind.safest is None else signal.kind.safest])
    between = values[:-1] + (values[1:] - values[:-1]) / 2
    between = np.where(between > values[:-1], between, values[1:])
    outside = [values[0] - 0.01, *between, values[-1] + 0.01]
    if values[0] >= 0.0 and not signal.rising:
        outside[0] = 0.0  # nothing is below it, and it reads better than -0.01
    return sign * np.asarray(outside) + 0.0
