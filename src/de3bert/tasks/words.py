"""Token classification: a row is a sentence, a list of words with a tag each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from de3bert.data.labels import LabelSet
from de3bert.data.split import split_sentences
from de3bert.data.stream import Row, Source, stream_sentences
from de3bert.data.table import Table
from de3bert.data.tokens import Encoded, TokenRow, pieces_of, units_of
from de3bert.data.words import read_words
from de3bert.errors import UsageError
from de3bert.exits import Policy, Target, Trace, signals
from de3bert.exits.calibrate import check_words_target
from de3bert.exits.scoring import SentenceScorer
from de3bert.exits.sentence_metrics import WORD_METRICS, check_word_metric
from de3bert.exits.units import check_rule
from de3bert.tasks.answers import TaggedSentence
from de3bert.tasks.explaining import explain_sentence
from de3bert.tasks.explanations import SentenceExplanation
from de3bert.tasks.inputs import as_sentences
from de3bert.tasks.task import TASKS, Answered, Integers, Outcome, Task
from de3bert.tasks.texts import TextClassification

__all__ = ["TokenClassification"]

NO_PAIRS = "A tagger reads sentences, not pairs: leave out {}."


class TokenClassification(Task[TaggedSentence]):
    name = "token-classification"
    row = counted = "sentences"
    describes = "tagger"
    example = '["some", "words"]'
    answer = TaggedSentence
    joint = True
    splits_words = True
    metrics = WORD_METRICS
    samples = (tuple(text.split() for text in TextClassification.samples[0]),)
    cut = "{count} sentences were truncated to {limit} tokens; the words after that have no tags"

    def read(
        self,
        source: object,
        *,
        text: str | None = None,
        text_pair: str | None = None,
        label: str | None = None,
        need_labels: bool = True,
        **options: Any,
    ) -> Table[list[str]]:
        if text_pair is not None:
            raise UsageError(NO_PAIRS.format("--text-pair"))
        return read_words(source, words=text, tags=label, need_tags=need_labels, **options)

    def stream(
        self, source: Source, stdin: IO[Any] | None, *, text: str | None, text_pair: str | None
    ) -> Iterator[Row]:
        if text_pair is not None:
            raise UsageError(NO_PAIRS.format("--text-pair"))
        return stream_sentences(source, stdin, words=text)

    def inputs(self, given: Any, pairs: bool | None, first: int | None = None) -> list[Any]:
        return as_sentences(given, first)

    def typed(self, text: str, pair: str | None) -> list[str]:
        if pair is not None:
            raise UsageError(NO_PAIRS.format("the second text"))
        return text.split()

    def unit_labels(self, table: Table[Any]) -> Iterator[Any]:
        return (tag for row in table.labels or () for tag in row)

    def numbers(self, classes: LabelSet, table: Table[Any]) -> list[Integers]:
        if table.labels is None:
            raise UsageError(f"{table.source} has no tags; name their column with --label.")
        flat = classes.encode(self.unit_labels(table), table.label_names)
        return np.split(flat, np.cumsum([len(row) for row in table.labels])[:-1])

    def unit_numbers(self, numbers: Any, rows: Sequence[TokenRow] | None = None) -> Integers:
        if rows is not None:  # words that were cut off are left out
            numbers = [own[:count] for own, count in zip(numbers, units_of(rows), strict=True)]
        return np.array([tag for own in numbers for tag in own], dtype=np.int64)

    def sentence_of(self, numbers: Any) -> Integers:
        return np.repeat(np.arange(len(numbers)), [len(own) for own in numbers])

    def split(
        self, numbers: Sequence[Integers], share: float, seed: int, names: Sequence[str]
    ) -> tuple[Integers, Integers]:
        return split_sentences(numbers, share, seed)

    def check_policy(self, policy: Policy) -> None:
        check_rule(policy.rule)

    def check_metric(self, metric: str, label_names: Sequence[str]) -> None:
        check_word_metric(metric, label_names)

    def scores(
        self, labels: Integers, answers: Integers, names: Sequence[str], sentence: Integers | None
    ) -> dict[str, float]:
        found = super().scores(labels, answers, names, sentence)
        if "span_f1" in found and sentence is not None:
            spans = SentenceScorer("span_f1", labels, names, sentence).tally(answers)
            found |= {"span_precision": spans.precision(), "span_recall": spans.recall()}
        return found

    def check_target(self, target: Target, unlabelled: bool = False) -> None:
        check_words_target(target, unlabelled)

    def answers(
        self,
        inputs: Sequence[Any],
        encoded: Encoded,
        outcome: Outcome,
        label_names: Sequence[str],
        depth: int,
    ) -> list[TaggedSentence]:
        names = [label_names[number] for number in outcome.logits.argmax(-1)]
        scores = signals.max_probability(outcome.logits).tolist()
        layers = outcome.exit_layers.tolist()
        made, start = [], 0
        for words, row, cut in zip(inputs, encoded.rows, encoded.cut, strict=True):
            pieces = pieces_of(row).tolist()
            part = slice(start, start + len(pieces))
            lost = (None,) * (len(words) - len(pieces))
            made.append(
                TaggedSentence(
                    tuple(words),
                    (*names[part], *lost),
                    (*scores[part], *lost),
                    (*layers[part], *lost),
                    (*pieces, *lost),
                    depth,
                    cut,
                )
            )
            start += len(pieces)
        return made

    def said(self, answer: TaggedSentence) -> tuple[str | None, ...]:
        return answer.tags

    def explained(
        self, given: list[str], answer: TaggedSentence, trace: Trace, policy: Policy, weight: float
    ) -> SentenceExplanation:
        return explain_sentence(answer, trace, policy, weight)

    def answered(self, answers: Sequence[TaggedSentence], label_names: Sequence[str]) -> Answered:
        number: dict[str | None, int] = {name: index for index, name in enumerate(label_names)}
        number[None] = -1
        known = [[layer for layer in each.exit_layers if layer is not None] for each in answers]
        return Answered(
            np.array([number[tag] for each in answers for tag in each.tags], dtype=np.int64),
            np.array([layer for own in known for layer in own], dtype=np.int64),
            np.array([p for each in answers for p in each.pieces if p is not None], dtype=np.int64),
            np.array([max(own) for own in known], dtype=np.int64),
            np.repeat(np.arange(len(known)), [len(own) for own in known]),
        )


TASKS.add(TokenClassification.name, TokenClassification())
