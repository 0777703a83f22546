"""Scores of tagged sentences: ratios of counts that add up over sentences.

Each is 2 hits / (given + there): entities for `span_f1`, and words for `accuracy`, where as many
are given as there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError
from de3bert.exits.spans import has_spans, span_counts
from de3bert.registry import Registry

__all__ = ["WORD_METRICS", "Tally", "check_word_metric", "ratio", "tally"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
RESAMPLES = 1000  # of the sentences, for an interval


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of every sentence, (sentences,) each."""

    hits: Integers
    given: Integers
    there: Integers

    def score(self) -> float:
        """The score over all sentences."""
        return float(ratio(self.hits.sum(), self.given.sum() + self.there.sum()))

    def precision(self) -> float:
        """The share of what was given that is right; a share of nothing is 0."""
        return float(ratio(self.hits.sum(), 2 * self.given.sum()))

    def recall(self) -> float:
        """The share of what is there that was given."""
        return float(ratio(self.hits.sum(), 2 * self.there.sum()))

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


def ratio(hits: Any, both: Any) -> Floats:
    return np.asarray(np.where(both > 0, 2 * hits, 0) / np.where(both > 0, both, 1))


# Each: true tags and answers of one sentence -> hits, given, there.
Count = Callable[[Sequence[str | None], Sequence[str | None]], tuple[int, int, int]]
WORD_METRICS: Registry[Count] = Registry("token-classification metric")
WORD_METRICS.add("span_f1", span_counts)


@WORD_METRICS.register("accuracy")
def right_words(actual: Sequence[str | None], given: Sequence[str | None]) -> tuple[int, int, int]:
    """Words with the right tag; a word without an answer is wrong."""
    hits = sum(mine == true for mine, true in zip(given, actual, strict=True))
    return hits, len(actual), len(actual)


def check_word_metric(metric: str, tags: Sequence[str]) -> None:
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
