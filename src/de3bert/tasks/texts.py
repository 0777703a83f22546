"""Text classification: a row is a text or a pair of texts, with one class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import split_rows
from de3bert.data.stream import Row, Source, stream_texts
from de3bert.data.table import Table
from de3bert.data.tokens import Encoded, TextInput
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace, signals
from de3bert.exits.metrics import METRICS, check_metric
from de3bert.tasks.answers import Prediction
from de3bert.tasks.explaining import explain_text
from de3bert.tasks.explanations import Explanation
from de3bert.tasks.inputs import as_texts
from de3bert.tasks.task import TASKS, Answered, Integers, Outcome, Task

__all__ = ["SENTENCE", "TextClassification"]

LENGTHS = (1, 3, 9, 20, 45)
SENTENCE = "it reads a text of some words, short or long, and says what kind of text this is; "


class TextClassification(Task[Prediction]):
    name = "text-classification"
    row = "texts"
    describes = "text classifier"
    example = '"some text"'
    answer = Prediction
    metrics = METRICS
    samples = (
        (
            *(" ".join((SENTENCE * 3).split()[:length]) for length in LENGTHS),
            "Ça dépend; 你好 世界! 🙂🙃 \u200f\u0627\u0644\u0633\u0644\u0627\u0645",
        ),
        ((SENTENCE, "and another one"), ("one", SENTENCE * 2)),
    )
    cut = "{count} texts were truncated to {limit} tokens"

    def read(self, source: object, **options: Any) -> Table:
        return read_table(source, **options)

    def stream(
        self, source: Source, stdin: IO[Any] | None, *, text: str | None, text_pair: str | None
    ) -> Iterator[Row]:
        return stream_texts(source, stdin, text=text, text_pair=text_pair)

    def inputs(self, given: Any, pairs: bool | None, first: int | None = None) -> list[Any]:
        return as_texts(given, pairs, first)

    def typed(self, text: str, pair: str | None) -> TextInput:
        return text if pair is None else (text, pair)

    def numbers(self, classes: LabelSet, table: Table[Any]) -> Integers:
        if table.labels is None:
            raise UsageError(
                f"{table.source} has no label column; scores need labels (--label NAME)."
            )
        return classes.encode(table.labels, names=table.label_names)

    def split(
        self, numbers: Integers, share: float, seed: int, names: Sequence[str]
    ) -> tuple[Integers, Integers]:
        parts = split_rows(numbers, {"train": 1.0 - share, "calibration": share}, seed, names)
        return parts["train"], parts["calibration"]

    def check_policy(self, policy: Policy) -> None:
        if policy.window is not None or policy.over != "max":
            raise UsageError(
                f"`{policy}` is about the words of a sentence, and this model classifies whole "
                f"texts. Write `{policy.rule}`."
            )

    def check_metric(self, metric: str, label_names: Sequence[str]) -> None:
        check_metric(metric, len(label_names))

    def answers(
        self,
        inputs: Sequence[Any],
        encoded: Encoded,
        outcome: Outcome,
        label_names: Sequence[str],
        depth: int,
    ) -> list[Prediction]:
        classes = outcome.logits.argmax(-1)
        scores = signals.max_probability(outcome.logits)
        return [
            Prediction(label_names[label], float(score), int(layer), depth, cut)
            for label, score, layer, cut in zip(
                classes, scores, outcome.exit_layers, encoded.cut, strict=True
            )
        ]

    def said(self, answer: Prediction) -> tuple[str]:
        return (answer.label,)

    def explained(
        self, given: TextInput, answer: Prediction, trace: Trace, policy: Policy, weight: float
    ) -> Explanation:
        joined = given if isinstance(given, str) else " | ".join(given)
        return explain_text(joined, answer, trace, policy, weight)

    def answered(self, answers: Sequence[Prediction], label_names: Sequence[str]) -> Answered:
        number = {name: index for index, name in enumerate(label_names)}
        layers = np.array([answer.exit_layer for answer in answers], dtype=np.int64)
        labels = np.array([number[answer.label] for answer in answers], dtype=np.int64)
        return Answered(labels, layers, np.ones_like(layers), layers, np.arange(len(layers)))


TASKS.add(TextClassification.name, TextClassification())
