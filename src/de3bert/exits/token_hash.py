"""Which tokens stop first: vocabulary ids in buckets, by training texts or embeddings (HashEE)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from de3bert.registry import Registry

__all__ = ["HASHES", "TokenCounts", "count_tokens", "equal_buckets"]

STARTS = 10  # of k-means, which ends in another place from each
ROUNDS = 30


@dataclass(frozen=True)
class TokenCounts:
    """How often each id stands in the texts of each class; special tokens count 0.

    A row of two texts counts as one text that has the tokens of both.

    Attributes:
        counts: (classes, vocabulary) int64.
        seed: for whatever is drawn.
        special: ids that go through all layers whatever else is said of them.
        embeddings: the backbone's word embeddings, (vocabulary, size), for hashes that ask.
    """

    counts: NDArray[np.int64]
    seed: int = 0
    special: frozenset[int] = frozenset()
    embeddings: NDArray[np.float32] | None = None

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
    counts, apart = np.zeros((classes, vocabulary), dtype=np.int64), frozenset(special)
    for ids, label in rows:
        np.add.at(counts[label], np.asarray(ids, dtype=np.int64), 1)
    counts[:, [number for number in apart if number < vocabulary]] = 0
    return TokenCounts(counts, seed, apart)


# Each: what is known of the tokens, and how many buckets -> the ids of every bucket, those that
# stop first in front. Ids in none go through all layers.
Hash = Callable[[TokenCounts, int], list[list[int]]]
HASHES: Registry[Hash] = Registry("hash of tokens")


def equal_buckets(order: Sequence[int], buckets: int) -> list[list[int]]:
    """Ids in the order in which they are to stop, len(order) // buckets each; the rest is last."""
    size = len(order) // buckets
    ends = [*(size * number for number in range(buckets)), len(order)]
    return [list(order[low:high]) for low, high in pairwise(ends)]


@HASHES.register("frequency")
def frequency(found: TokenCounts, buckets: int) -> list[list[int]]:
    """The most frequent first: there is little in them that needs many layers."""
    return equal_buckets(found.first(found.counts.sum(axis=0)), buckets)


@HASHES.register("information")
def information(found: TokenCounts, buckets: int) -> list[list[int]]:
    """The most informative of the class first: I(x) = sum_y p(x, y) log(p(x, y) / (p(x) p(y))).

    Probabilities are shares of all tokens.
    """
    joint = found.counts / max(1, found.counts.sum())
    apart = joint.sum(axis=0) * joint.sum(axis=1, keepdims=True)
    there = joint > 0
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=there)
    return equal_buckets(found.first((joint * np.log(ratio)).sum(axis=0)), buckets)


@HASHES.register("random")
def drawn(found: TokenCounts, buckets: int) -> list[list[int]]:
    """Any order, but one and the same for an id wherever it stands."""
    order = np.random.default_rng(found.seed).permutation(found.seen)
    return equal_buckets(order.tolist(), buckets)


@HASHES.register("occurrence")
def occurrence(found: TokenCounts, buckets: int) -> list[list[int]]:
    """No order: each place where an id stands draws a layer of its own (`last_layers`)."""
    return equal_buckets(found.seen.tolist(), buckets)


@HASHES.register("cluster")
def cluster(found: TokenCounts, buckets: int) -> list[list[int]]:
    """A cluster of word embeddings each, those with the smallest sum of |e(x)| over x first.

    Every id of the vocabulary is in one, seen in training or not; buckets are of any size. The sum
    is that of the authors' code: small clusters of short embeddings stop first.
    """
    if found.embeddings is None:
        raise ValueError("clusters are made of embeddings, and there are none")
    cluster_of = _clusters(found.embeddings, min(buckets, len(found.embeddings)), found.seed)
    lengths = np.linalg.norm(found.embeddings, axis=1)
    sums = np.bincount(cluster_of, weights=lengths, minlength=buckets)
    members = (np.flatnonzero(cluster_of == each) for each in np.argsort(sums, kind="stable"))
    return [[number for number in ids.tolist() if number not in found.special] for ids in members]


def _clusters(vectors: NDArray[np.float32], count: int, seed: int) -> NDArray[np.int64]:
    """The cluster of every vector, (rows,): k-means, the best of several starts (k-means++)."""
    from scipy.cluster.vq import kmeans2

    generator = np.random.default_rng(seed)
    best, least = np.zeros(len(vectors), dtype=np.int64), np.inf
    for _ in range(STARTS):
        with warnings.catch_warnings():  # a cluster may run empty where vectors are the same
            warnings.simplefilter("ignore")
            centres, nearest = kmeans2(vectors, count, iter=ROUNDS, minit="++", seed=generator)
        spread = float(((vectors - centres[nearest]) ** 2).sum(dtype=np.float64))
        if spread < least:
            best, least = nearest.astype(np.int64), spread
    return best
