"""What a task is, and all of them by the names that Hugging Face gives them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from de3bert.data.label_names import LabelNames
from de3bert.data.labels import LabelSet
from de3bert.data.stream import Row, Source
from de3bert.data.table import Table
from de3bert.data.tokens import Encoded, TokenRow
from de3bert.errors import UsageError
from de3bert.exits import Policy, Target, Trace
from de3bert.exits.scoring import scorer
from de3bert.registry import Registry
from de3bert.tasks.answers import Prediction
from de3bert.tasks.explanations import Explanation, SentenceExplanation

__all__ = ["TASKS", "Answer", "Answered", "Outcome", "Task", "known_task", "task_of"]

Answer = TypeVar("Answer", default=Prediction)
Integers = NDArray[np.int64]
OLD_NAMES = {"text": "text-classification", "words": "token-classification"}


class Outcome(NamedTuple):
    """Where each unit got its answer and what it said there."""

    exit_layers: Integers  # (units,)
    logits: NDArray[np.float32]  # (units, classes), of the exit taken


class Answered(NamedTuple):
    """Answers as numbers.

    Attributes:
        labels: of every unit, -1 where it has none, (units,).
        exit_layers: of every unit with an answer.
        weights: how often each of these counts in mean layers.
        row_layers: the layers that were run for each row, (rows,).
        row_of: the number of the row that each unit with an answer belongs to.
    """

    labels: Integers
    exit_layers: Integers
    weights: Integers
    row_layers: Integers
    row_of: Integers


class Task(ABC, Generic[Answer]):
    """One kind of question to texts.

    Attributes:
        name: as Hugging Face calls it.
        row: what rows are called in messages; `counted` when they are counted as data.
        describes: what a model of this task is; `example` is an input as Python has it.
        answer: the dataclass of an answer.
        joint: whether a row has several units that leave together.
        splits_words: whether a row is a list of words.
        metrics: those there are, by name.
        samples: inputs of all kinds and lengths, to compare two models on.
        cut: what to say about rows that were truncated, with their `{count}` and the `{limit}`.
    """

    name: ClassVar[str]
    row: ClassVar[str]
    counted: ClassVar[str] = "rows"
    describes: ClassVar[str]
    example: ClassVar[str]
    answer: type[Answer]
    joint: ClassVar[bool] = False
    splits_words: ClassVar[bool] = False
    metrics: ClassVar[Registry[Any]]
    samples: ClassVar[tuple[tuple[Any, ...], ...]]
    cut: ClassVar[str]

    @abstractmethod
    def read(
        self,
        source: object,
        *,
        text: str | None = None,
        text_pair: str | None = None,
        label: str | None = None,
        split: str | None = None,
        config: str | None = None,
        need_labels: bool = True,
        limit: int | None = None,
        label_names: LabelNames | None = None,
    ) -> Table[Any]:
        """Checked rows of a file, a hub id or a table, with labels if they are needed or there."""

    @abstractmethod
    def stream(
        self, source: Source, stdin: IO[Any] | None, *, text: str | None, text_pair: str | None
    ) -> Iterator[Row]:
        """Rows to predict on, one after another."""

    @abstractmethod
    def inputs(self, given: Any, pairs: bool | None, first: int | None = None) -> list[Any]:
        """The rows of a call from Python as plain lists and strings; anything else is refused.

        Args:
            pairs: whether the model reads pairs of texts; None when it is not known.
            first: of a stream, the number of the first row; its end is not known.
        """

    @abstractmethod
    def typed(self, text: str, pair: str | None) -> Any:
        """One row as it is typed on a command line."""

    def unit_labels(self, table: Table[Any]) -> Iterable[Any]:
        """The labels of all units of a table, as given there."""
        return table.labels or ()

    @abstractmethod
    def numbers(self, classes: LabelSet, table: Table[Any]) -> Any:
        """The labels of a table as the model numbers them, an entry for each row."""

    def unit_numbers(self, numbers: Any, rows: Sequence[TokenRow] | None = None) -> Integers:
        """Such numbers for each unit, (units,).

        Args:
            rows: only units that the model sees in these token rows; None for all.
        """
        return np.asarray(numbers)

    def sentence_of(self, numbers: Any) -> Integers | None:
        """Of each unit the number of its row; None where every row is one unit."""
        return None

    @abstractmethod
    def split(
        self, numbers: Any, share: float, seed: int, names: Sequence[str]
    ) -> tuple[Integers, Integers]:
        """Rows to train on, and a share of them to hold out for calibration."""

    def policy(self, line: str) -> Policy:
        """One line of text as a policy of this task."""
        policy = Policy.parse(line)
        self.check_policy(policy)
        return policy

    @abstractmethod
    def check_policy(self, policy: Policy) -> None:
        """UsageError for a policy that is for another task."""

    @abstractmethod
    def check_metric(self, metric: str, label_names: Sequence[str]) -> None:
        """UsageError for an unknown metric, and for one that does not fit these classes."""

    def fitting_metrics(self, label_names: Sequence[str]) -> list[str]:
        """The metrics that these classes can be scored by."""
        found = []
        for metric in self.metrics:
            try:
                self.check_metric(metric, label_names)
            except UsageError:
                continue
            found.append(metric)
        return found

    def scores(
        self, labels: Integers, answers: Integers, names: Sequence[str], sentence: Integers | None
    ) -> dict[str, float]:
        """Everything that answers can be scored by; `sentence` as in `sentence_of`."""
        return {
            metric: scorer(metric, labels, names, sentence).score(answers)
            for metric in self.fitting_metrics(names)
        }

    def check_target(self, target: Target, unlabelled: bool = False) -> None:
        """UsageError for a target that means nothing here; `unlabelled` with texts of traffic."""

    @abstractmethod
    def answers(
        self,
        inputs: Sequence[Any],
        encoded: Encoded,
        outcome: Outcome,
        label_names: Sequence[str],
        depth: int,
    ) -> list[Answer]:
        """An answer for each row, from what the engine found out of its units."""

    @abstractmethod
    def answered(self, answers: Sequence[Answer], label_names: Sequence[str]) -> Answered:
        """The way back: answers as numbers."""

    @abstractmethod
    def said(self, answer: Answer) -> tuple[str | None, ...]:
        """What an answer says of every unit of its row; None where it says nothing."""

    @abstractmethod
    def explained(
        self, given: Any, answer: Answer, trace: Trace, policy: Policy, weight: float
    ) -> Explanation | SentenceExplanation:
        """What every exit said of one row, and where the policy let its units go.

        Args:
            trace: of this row alone.
            weight: lambda of the EDR that is shown.
        """

    def check_single(self, source: object, what: str, why: str) -> None:
        """UsageError for what is only for rows of one unit."""
        if self.joint:
            raise UsageError(f"{source} is a tagger, and {what} is for text classifiers: {why}.")


TASKS: Registry[Task[Any]] = Registry("task")


def known_task(name: str) -> str:
    """The name of a task; older files call them `text` and `words`."""
    name = OLD_NAMES.get(name, name)
    TASKS[name]
    return name


def task_of(config: Mapping[str, Any]) -> Task[Any]:
    """The task of a model's config as JSON has it; older ones said it with `token_exits`."""
    if config.get("token_exits") == "words":
        return TASKS["token-classification"]
    return TASKS[known_task(str(config.get("task") or _by_class(config)))]


def _by_class(config: Mapping[str, Any]) -> str:
    """The hub tells of a config no more than the class of its model."""
    tags = "EarlyExitForTokenClassification" in (config.get("architectures") or ())
    return "token-classification" if tags else "text-classification"
