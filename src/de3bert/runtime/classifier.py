"""A loaded classifier: predicts with real stopping, traces, explains."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, overload

from de3bert.data.tokens import Encoded, TextInput, TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy, Trace
from de3bert.exits.bandit import Bandit
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.keeping import Keeper, KeepRule
from de3bert.printable import kind_of, shown
from de3bert.runtime.arguments import checked_count, checked_name
from de3bert.runtime.engine import (
    Backend,
    run_batch,
    run_in_order,
    run_kept,
    run_sorted,
    run_stretches,
)
from de3bert.runtime.loaded import FULL, Loaded, no_such_point
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.tracing import trace_rows
from de3bert.tasks import Explanation, Prediction, SentenceExplanation, TaggedSentence
from de3bert.tasks.inputs import as_stream
from de3bert.tasks.task import Answer, Outcome, Task

__all__ = ["FULL", "Classifier", "TextInput"]

# As users hold them; `de3bert.tasks.inputs` says what is accepted, and refuses the rest.
Texts = str | tuple[str, str] | Iterable[TextInput | list[str]]
REMEMBERED = 256  # policies that need not be read again
AHEAD = 16  # batches that a stream reads ahead, to sort their rows by length


class Classifier(Loaded, Generic[Answer]):
    """A classifier of texts, or of the words of sentences, that stops where its point allows.

    What it takes and answers is its `task`'s: texts and a `Prediction` each, or sentences as lists
    of words and a `TaggedSentence` each.

    Several threads may use one, each with texts and points of its own. It can be pickled, copied
    and sent to other processes, where it opens its folder again; what a bandit or a controller has
    learned is not sent along (see `learned`).

    Example:
        >>> clf = de3bert.load("runs/demo/model")
        >>> clf.predict(["a joy from start to finish"], point="2x")
        [Prediction(label='positive', score=0.997, exit_layer=2, layers=6)]
        >>> tagger = de3bert.load("runs/ner")
        >>> tagger.predict([["Ada", "wrote", "it"]], policy="entropy < 0.1 window 5")[0].tags
        ('B-PER', 'O', 'O')
    """

    backend: Backend
    task: Task[Answer]

    def __init__(self, backend: Backend, source: str) -> None:
        super().__init__(backend, source)
        self._chosen: dict[tuple[str | None, str | Policy | None], Policy] = {}
        self._learners: dict[BanditRule | KeepRule, Bandit | Keeper] = {}
        self._learning = threading.RLock()  # rows of a bandit or controller have an order

    @property
    def has_router(self) -> bool:
        return self.backend.has_router

    def policy(self, point: str | None = None, policy: str | Policy | None = None) -> Policy:
        """The policy of a point, or the one given; the model's default when neither is."""
        if not (policy is None or isinstance(policy, str | Policy)):
            raise UsageError(
                "A policy is one line of text, such as `entropy < 0.2`, or a Policy; got "
                f"{shown(policy)} ({kind_of(policy)})."
            )
        asked = (checked_name("point", point), policy)
        known = self._chosen.get(asked)
        if known is None:  # reading a line of text takes as long as a small layer
            known = self._choose(point, policy)
            if len(self._chosen) >= REMEMBERED:
                self._chosen = {}  # not emptied: another thread may be reading it
            self._chosen[asked] = known
        return known

    def _choose(self, point: str | None, policy: str | Policy | None) -> Policy:
        if policy is not None:
            if point is not None:
                raise UsageError("Give a point or a policy, not both.")
            chosen = self.task.policy(policy) if isinstance(policy, str) else policy
        else:
            chosen = self._point_policy(self.point_name(point))
        self._check(chosen)
        return chosen

    def predict(
        self,
        texts: Texts,
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
        batch_size: int = 32,
    ) -> list[Answer]:
        """One answer per text, pair of texts or sentence, in input order.

        Texts come as one str, a list, a tuple, a generator, an array or a column of str (numpy,
        pandas, Arrow); pairs as tuples or lists of two; sentences as lists of words.

        An answer says in `truncated` whether its text was cut to the model's limit.

        Rows that have left are dropped from the batch before the next layer; label and exit layer
        are those of one-by-one prediction, whatever the batch size.

        Bandits and controllers (`keep`) learn as they answer: rows are taken in input order, and
        the next call with the same policy continues from there, until `forget`.
        """
        size = checked_count("batch_size", batch_size)
        chosen = self.policy(point, policy)
        inputs, encoded = self._encoded(texts)
        return self._answers(inputs, encoded, chosen, size)

    def _answers(
        self, inputs: list[Any], encoded: Encoded, policy: Policy, batch_size: int
    ) -> list[Answer]:
        if not encoded.rows:
            return []
        outcome = self._run(encoded.rows, policy, batch_size)
        return self.task.answers(inputs, encoded, outcome, self.label_names, self.depth)

    def _run(self, rows: list[TokenRow], policy: Policy, batch_size: int) -> Outcome:
        if isinstance(policy.rule, BanditRule | KeepRule):
            with self._learning:
                learner = self._learner(policy.rule)
                if isinstance(learner, Bandit):
                    return run_in_order(self.backend, rows, learner)
                return run_kept(self.backend, rows, learner, batch_size)
        if len(rows) <= batch_size:
            return run_batch(self.backend, rows, policy)
        return run_sorted(self.backend, rows, policy, batch_size)

    def forget(self) -> None:
        """Resets bandits and controllers, as if nothing had been predicted yet."""
        with self._learning:
            self._learners.clear()

    def learned(self) -> dict[str, Any]:
        """What bandits and controllers have learned so far, by policy, in plain JSON values."""
        with self._learning:
            return {str(rule): learner.to_json() for rule, learner in self._learners.items()}

    def resume(self, learned: Mapping[str, Any]) -> None:
        """Continues from what `learned` returned, in this process or another."""
        for line, state in learned.items():
            rule = self.policy(policy=line).rule
            if not isinstance(rule, BanditRule | KeepRule) or not isinstance(state, Mapping):
                raise De3Error(f"`{shown(line)}` is not a policy that learns as it answers.")
            with self._learning:
                learner = rule.fresh(self.backend.exit_layers)
                learner.resume(state)
                self._learners[rule] = learner

    def _learner(self, rule: BanditRule | KeepRule) -> Bandit | Keeper:
        """What was learned so far with these settings."""
        if rule not in self._learners:
            self._learners[rule] = rule.fresh(self.backend.exit_layers)
        return self._learners[rule]

    def predict_iter(
        self,
        texts: Texts,
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
        batch_size: int = 32,
    ) -> Iterator[Answer]:
        """Answers to a stream of texts or sentences, in order, without holding all of it in memory.

        Reads some batches ahead, so that rows of similar length share one.
        """
        size = checked_count("batch_size", batch_size)
        chosen = self.policy(point, policy)
        return self._stream(as_stream(texts, self.info.text_pairs), chosen, size)

    def _stream(self, texts: Iterator[Any], policy: Policy, batch_size: int) -> Iterator[Answer]:
        first = 1
        while ahead := list(itertools.islice(texts, AHEAD * batch_size)):
            inputs, encoded = self._encoded(ahead, first)
            yield from self._answers(inputs, encoded, policy, batch_size)
            first += len(ahead)

    def encode(self, texts: Texts) -> Encoded:
        """Token rows, and which of them were cut to the model's limit."""
        return self._encoded(texts)[1]

    def _encoded(self, texts: Texts, first: int | None = None) -> tuple[list[Any], Encoded]:
        inputs = self.task.inputs(texts, self.info.text_pairs, first)
        return inputs, self.backend.encoder(inputs)

    def trace(
        self,
        texts: Texts,
        labels: Any = None,
        *,
        batch_size: int = 32,
        distances: bool | None = None,
        info: dict[str, Any] | None = None,
        progress: str | None = None,
    ) -> Trace:
        """One full-depth pass that records every exit: the material of curves and calibration.

        Distances are recorded where the model has prototypes, unless `distances` is False, and
        certainty where it has a router. Speed-ups on it refer to the model's `base_depth`. How many
        texts were cut to the model's limit is `truncated` in its `info`.

        Args:
            labels: the number of each text's class, (rows,), or of the tags of each sentence, a
                list each. Words that were cut off are left out.
        """
        size = checked_count("batch_size", batch_size)
        if distances is None:
            self._check_prototypes()
            distances = self._traces_distances()
        encoded = self.encode(texts)
        rows = encoded.rows
        if not rows:
            raise UsageError(f"There are no {self.task.row} to trace.")
        return trace_rows(
            self.backend,
            rows,
            size,
            distances=distances,
            labels=None if labels is None else self.task.unit_numbers(labels, rows),
            info={"model": self.source, "truncated": encoded.truncated, **(info or {})},
            progress=progress,
        )

    @overload
    def explain(
        self: Classifier[Prediction],
        text: TextInput,
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
    ) -> Explanation: ...

    @overload
    def explain(
        self: Classifier[TaggedSentence],
        text: list[str],
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
    ) -> SentenceExplanation: ...

    def explain(
        self,
        text: TextInput | list[str],
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
    ) -> Explanation | SentenceExplanation:
        """Layer by layer, what each exit said of a text and where the policy let it go.

        Of a sentence, a list of words, it says this word by word. Of a bandit or controller it
        shows what it would do now; it learns nothing by being asked.
        """
        chosen = now = self.policy(point, policy)
        (given,), encoded = self._encoded([text])
        if isinstance(chosen.rule, BanditRule | KeepRule):
            with self._learning:
                now = Policy(self._learner(chosen.rule).present)
        outcome = run_stretches(self.backend, encoded.rows, now)
        trace = trace_rows(
            self.backend,
            encoded.rows,
            1,
            distances=self._traces_distances() and not self._unset_prototypes(),
            halts=None if now.window is None else outcome.exit_layers,
        )
        (answer,) = self.task.answers([given], encoded, outcome, self.label_names, self.depth)
        return self.task.explained(given, answer, trace, chosen, lambda_of(chosen, self.info))

    def _point_policy(self, point: str) -> Policy:
        if point == FULL:  # first: no stored point makes it anything else
            return Policy.parse(FULL)
        points = self.points
        if point in points:
            return points[point].policy
        raise no_such_point(self.source, point, points)

    def _check(self, policy: Policy) -> None:
        self.task.check_policy(policy)
        policy.start(0, self.backend.exit_layers[:-1], self.depth)
        if policy.needs_distances:
            if not self.has_prototypes:
                raise UsageError(
                    f"The policy `{policy}` reads distances to prototypes, but this model has none "
                    f"(method {self.info.method}). Use an entropy policy such as `entropy < 0.2`."
                )
            self._check_prototypes()
        if policy.needs_certainty and not self.has_router:
            raise UsageError(
                f"The policy `{policy}` reads the certainty of a router, but this model has none "
                f"(method {self.info.method}). Use an entropy policy such as `entropy < 0.2`."
            )

    def _traces_distances(self) -> bool:
        return self.has_prototypes and len(self.backend.exit_layers) > 1

    def _unset_prototypes(self) -> list[str]:
        """Classes whose prototypes were never set."""
        return list(self.backend.prototypes_unset) if self.has_prototypes else []

    def _check_prototypes(self) -> None:
        missing = self._unset_prototypes()
        if missing:
            raise De3Error(
                f"The prototypes of these classes were never set: {', '.join(missing)}. "
                "The model has not been trained on rows of those classes; train it, or use an "
                "entropy policy such as `entropy < 0.2`."
            )


def lambda_of(policy: Policy, info: ModelInfo) -> float:
    """The weight of the policy's EDR, or the model's own where the policy has none."""
    stored = info.method_options.get("lambda", 1.0)
    if not isinstance(stored, int | float) or not stored >= 0:
        raise De3Error(f"The model's config is damaged: its lambda is {stored!r:.60}.")
    return dict(policy.signal.params).get("lambda", stored) if policy.signal else stored
