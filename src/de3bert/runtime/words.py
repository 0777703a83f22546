"""A loaded model of words: tags sentences with real stopping, and traces them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Trace, signals
from de3bert.exits.word_replay import WordTrace
from de3bert.exits.words import WordPolicy
from de3bert.registry import unknown
from de3bert.runtime.facts import Facts
from de3bert.runtime.weights import weights_sha256
from de3bert.runtime.word_engine import (
    WordBackend,
    WordOutcome,
    record_words,
    run_sorted,
    words_of,
)

__all__ = ["TaggedSentence", "WordClassifier"]

FULL = "full"
ONLY_TEXTS = (
    "This model tags words, and `{name}` is for classifiers of texts. Models of words have "
    "`predict` and `trace`, and the verbs train, predict, evaluate, calibrate and inspect."
)


@dataclass(frozen=True)
class TaggedSentence:
    """The tags of one sentence; every tuple has an entry for each word.

    A word behind the model's length limit has no answer: its entries are None.

    Attributes:
        exit_layers: the layer that answered, counted from 1.
        pieces: how many tokens each word is.
        layers: the depth of the model.
    """

    words: tuple[str, ...]
    tags: tuple[str | None, ...]
    scores: tuple[float | None, ...]
    exit_layers: tuple[int | None, ...]
    pieces: tuple[int | None, ...]
    layers: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class WordClassifier:
    """Tags the words of sentences; sentences leave, or words halt, where the policy lets them.

    Example:
        >>> tagger = de3bert.load("runs/ner")
        >>> tagger.predict([["Ada", "wrote", "it"]], policy="entropy < 0.1 window 5")[0].tags
        ('B-PER', 'O', 'O')
    """

    def __init__(self, backend: WordBackend, source: str) -> None:
        self.backend = backend
        self.source = source
        self.config: Facts = backend.facts
        self.label_names = self.config.label_names
        self.truncated = 0  # sentences of the last call that were longer than the limit

    def __getattr__(self, name: str) -> Any:
        # `load` gives this also where somebody expects a classifier of texts: tell them.
        if name in ("explain", "predict_iter", "encode"):
            raise UsageError(ONLY_TEXTS.format(name=name))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def depth(self) -> int:
        return int(self.backend.exit_layers[-1])

    @property
    def has_prototypes(self) -> bool:
        return self.backend.has_prototypes

    @functools.cached_property
    def weights_sha256(self) -> str | None:
        """Names the weights; None for a model that is not a local folder."""
        return weights_sha256(self.source)

    @functools.cached_property
    def points(self) -> dict[str, OperatingPoint]:
        """The operating points stored in the model, by name."""
        stored = self.config.operating_points
        return {name: OperatingPoint.from_json(document) for name, document in stored.items()}

    def point_name(self, point: str | None = None) -> str:
        """The point that is used when `point` is asked for: the model's default for None."""
        return point or self.config.default_point or FULL

    def policy(
        self, point: str | None = None, policy: str | WordPolicy | None = None
    ) -> WordPolicy:
        """The policy of a point, or the one given; the model's default when neither is."""
        if policy is None:
            chosen = self._point_policy(self.point_name(point))
        elif point is not None:
            raise UsageError("Give a point or a policy, not both.")
        else:
            chosen = WordPolicy.parse(policy) if isinstance(policy, str) else policy
        chosen.check(self.backend.exit_layers)
        if chosen.needs_certainty:
            raise UsageError(
                f"The policy `{chosen}` reads a router, and models of words have none."
            )
        if chosen.needs_distances:
            self._check_prototypes(str(chosen))
        return chosen

    def predict(
        self,
        sentences: Sequence[Sequence[str]],
        point: str | None = None,
        *,
        policy: str | WordPolicy | None = None,
        batch_size: int = 32,
    ) -> list[TaggedSentence]:
        """The tags of every sentence, a list of words each, in input order.

        Tags and exit layers are those of one-by-one prediction, whatever the batch size.
        """
        chosen = self.policy(point, policy)
        rows = self._rows(sentences, batch_size)
        if not rows:
            return []
        outcome = run_sorted(self.backend, rows, chosen, batch_size)
        return self._tagged(sentences, rows, outcome)

    def trace(
        self,
        sentences: Sequence[Sequence[str]],
        labels: Sequence[Sequence[int]] | None = None,
        *,
        batch_size: int = 32,
        info: dict[str, Any] | None = None,
        progress: str | None = None,
    ) -> WordTrace:
        """One full-depth pass that records every exit for every word.

        Args:
            labels: the numbers of the tags of each sentence. Words that were cut off are left out.
        """
        rows = self._rows(sentences, batch_size)
        if not rows:
            raise UsageError("There are no sentences to trace.")
        distances = self.has_prototypes and len(self.backend.exit_layers) > 1
        if distances:
            self._check_prototypes("edr")
        logits, far = record_words(
            self.backend, rows, batch_size, distances=distances, progress=progress
        )
        counts = words_of(rows)
        known = None
        if labels is not None:
            kept = [list(own)[:count] for own, count in zip(labels, counts, strict=True)]
            known = np.array([tag for own in kept for tag in own], dtype=np.int64)
        trace = Trace(
            logits=logits,
            distances=far,
            labels=known,
            tokens=np.concatenate([_pieces(row) for row in rows]),
            exit_layers=self.backend.exit_layers,
            label_names=self.label_names,
            info={"model": self.source, "method": self.config.method, **(info or {})},
        )
        return WordTrace(trace, np.repeat(np.arange(len(rows)), counts))

    def _rows(self, sentences: Sequence[Sequence[str]], batch_size: int) -> list[TokenRow]:
        if batch_size < 1:
            raise UsageError(f"batch_size must be at least 1, got {batch_size}.")
        if isinstance(sentences, str):
            raise UsageError("Give a list of sentences; for one sentence pass [words].")
        for number, sentence in enumerate(sentences, start=1):
            listed = not isinstance(sentence, str) and len(sentence) > 0
            if not listed or not all(isinstance(word, str) and word.strip() for word in sentence):
                raise UsageError(
                    f"Sentence {number} of {len(sentences)} is not a list of words with something "
                    f"in each: {sentence!r}. This model tags words; split texts into words first."
                )
        encoded = self.backend.encoder(sentences)
        self.truncated = encoded.truncated
        return encoded.rows

    def _tagged(
        self, sentences: Sequence[Sequence[str]], rows: list[TokenRow], outcome: WordOutcome
    ) -> list[TaggedSentence]:
        names = [self.label_names[number] for number in outcome.logits.argmax(-1)]
        scores = signals.max_probability(outcome.logits).tolist()
        layers = outcome.exit_layers.tolist()
        made, start = [], 0
        for sentence, row in zip(sentences, rows, strict=True):
            count = max(row["word_ids"])
            cut = (None,) * (len(sentence) - count)
            part = slice(start, start + count)
            made.append(
                TaggedSentence(
                    tuple(sentence),
                    (*names[part], *cut),
                    (*scores[part], *cut),
                    (*layers[part], *cut),
                    (*_pieces(row).tolist(), *cut),
                    self.depth,
                )
            )
            start += count
        return made

    def _point_policy(self, point: str) -> WordPolicy:
        if point in self.points:
            return WordPolicy(self.points[point].policy)
        if point == FULL:
            return WordPolicy.parse(FULL)
        raise UsageError(
            unknown("operating point", point, [FULL, *self.points])
            + f"\nMake one with: de3 calibrate {self.source} --data FILE --target layers=2.0 "
            f"--name {point}"
        )

    def _check_prototypes(self, policy: str) -> None:
        if not self.has_prototypes:
            raise UsageError(
                f"The policy `{policy}` reads distances to prototypes, but this model has none "
                f"(method {self.config.method}). Use an entropy policy such as `entropy < 0.2`."
            )
        missing = self.backend.prototypes_unset
        if missing:
            raise De3Error(f"The prototypes of these tags were never set: {', '.join(missing)}.")


def _pieces(row: TokenRow) -> NDArray[np.int64]:
    """How many tokens each word of a sentence is, (words,)."""
    return np.bincount(row["word_ids"])[1:]
