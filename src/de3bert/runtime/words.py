"""A loaded model of words: tags sentences with real stopping, and traces them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Trace, signals
from de3bert.exits.word_replay import WordTrace
from de3bert.exits.words import WordPolicy
from de3bert.runtime.arguments import checked_count, kind_of, shown
from de3bert.runtime.inputs import as_sentences
from de3bert.runtime.loaded import FULL, Loaded, no_such_point
from de3bert.runtime.word_engine import (
    WordBackend,
    WordOutcome,
    record_words,
    run_sorted,
    words_of,
)

__all__ = ["TaggedSentence", "WordClassifier"]

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


class WordClassifier(Loaded):
    """Tags the words of sentences; sentences leave, or words halt, where the policy lets them.

    Several threads may use one. It can be pickled, copied and sent to other processes, where it
    opens its folder again.

    Example:
        >>> tagger = de3bert.load("runs/ner")
        >>> tagger.predict([["Ada", "wrote", "it"]], policy="entropy < 0.1 window 5")[0].tags
        ('B-PER', 'O', 'O')
    """

    backend: WordBackend

    def __getattr__(self, name: str) -> Any:
        # `load` gives this also where somebody expects a classifier of texts: tell them.
        if name in ("explain", "predict_iter", "encode"):
            raise UsageError(ONLY_TEXTS.format(name=name))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def policy(
        self, point: str | None = None, policy: str | WordPolicy | None = None
    ) -> WordPolicy:
        """The policy of a point, or the one given; the model's default when neither is."""
        if policy is None:
            chosen = self._point_policy(self.point_name(point))
        elif point is not None:
            raise UsageError("Give a point or a policy, not both.")
        elif isinstance(policy, str | WordPolicy):
            chosen = WordPolicy.parse(policy) if isinstance(policy, str) else policy
        else:
            raise UsageError(
                "A policy is one line of text, such as `entropy < 0.2`, or a WordPolicy; got "
                f"{shown(policy)} ({kind_of(policy)})."
            )
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
        sentences: Iterable[Iterable[str]],
        point: str | None = None,
        *,
        policy: str | WordPolicy | None = None,
        batch_size: int = 32,
    ) -> list[TaggedSentence]:
        """The tags of every sentence, a list of words each, in input order.

        Tags and exit layers are those of one-by-one prediction, whatever the batch size.
        """
        size = checked_count("batch_size", batch_size)
        chosen = self.policy(point, policy)
        words = as_sentences(sentences)
        rows = self._rows(words)
        if not rows:
            return []
        outcome = run_sorted(self.backend, rows, chosen, size)
        return self._tagged(words, rows, outcome)

    def trace(
        self,
        sentences: Iterable[Iterable[str]],
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
        size = checked_count("batch_size", batch_size)
        rows = self._rows(as_sentences(sentences))
        if not rows:
            raise UsageError("There are no sentences to trace.")
        distances = self.has_prototypes and len(self.backend.exit_layers) > 1
        if distances:
            self._check_prototypes("edr")
        logits, far = record_words(self.backend, rows, size, distances=distances, progress=progress)
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

    def _rows(self, sentences: list[list[str]]) -> list[TokenRow]:
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
        if point == FULL:  # first: no stored point makes it anything else
            return WordPolicy.parse(FULL)
        if point in self.points:
            return WordPolicy(self.points[point].policy)
        raise no_such_point(self.source, point, self.points)

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
