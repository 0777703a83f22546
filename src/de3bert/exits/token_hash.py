"""Which tokens stop first: orders of vocabulary ids, from counts over training texts (HashEE)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.registry import Registry

__all__ = ["HASHES", "TokenCounts", "count_tokens"]


@dataclass(frozen=True)
class TokenCounts:
    """How often each id stands in the texts of each class; special tokens count 0.

    Attributes:
        counts: (classes, vocabulary) int64.
        seed: for orders that are drawn.
    """

    counts: NDArray[np.int64]
    seed: int = 0

    @property
    def seen(self) -> NDArray[np.int64]:
        """The ids that stand anywhere, increasing."""
        return np.flatnonzero(self.counts.any(axis=0))

    def first(self, score: NDArray[np.floating] | NDArray[np.int64]) -> list[int]:
        """The seen ids, the highest score (vocabulary,) first; ties by the lower id."""
        seen = self.seen
        order = np.argsort(-score[seen], kind="stable")
        return [int(number) for number in seen[order]]


def count_tokens(
    rows: Iterable[tuple[Sequence[int], int]],
    vocabulary: int,
    classes: int,
    special: Iterable[int],
    seed: int = 0,
) -> TokenCounts:
    """Counts over texts: (vocabulary ids, class) each."""
    counts = np.zeros((classes, vocabulary), dtype=np.int64)
    for ids, label in rows:
        np.add.at(counts[label], np.asarray(ids, dtype=np.int64), 1)
    counts[:, [number for number in special if number < vocabulary]] = 0
    return TokenCounts(counts, seed)


# Each: counts -> the seen ids, those that stop first in front.
Order = Callable[[TokenCounts], list[int]]
HASHES: Registry[Order] = Registry("hash of tokens")


@HASHES.register("frequency")
def frequency(found: TokenCounts) -> list[int]:
    """The most frequent first: there is little in them that needs many layers."""
    return found.first(found.counts.sum(axis=0))


@HASHES.register("information")
def information(found: TokenCounts) -> list[int]:
    """The most informative of the class first: I(x) = sum_y p(x, y) log(p(x, y) / (p(x) p(y))).

    Probabilities are shares of all tokens.
    """
    joint = found.counts / max(1, found.counts.sum())
    apart = joint.sum(axis=0) * joint.sum(axis=1, keepdims=True)
    there = joint > 0
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=there)
    return found.first((joint * np.log(ratio)).sum(axis=0))


@HASHES.register("random")
def drawn(found: TokenCounts) -> list[int]:
    """Any order, but one and the same for an id wherever it stands."""
    return [int(number) for number in np.random.default_rng(found.seed).permutation(found.seen)]


@HASHES.register("occurrence")
def occurrence(found: TokenCounts) -> list[int]:
    """No order: each place where an id stands draws a layer of its own (`last_layers`)."""
    return [int(number) for number in found.seen]
