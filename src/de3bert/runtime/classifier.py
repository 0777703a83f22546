"""A loaded classifier: predicts with real stopping, traces, explains."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from de3bert.data.tokens import TextInput, TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Policy, Trace, signals
from de3bert.exits.bandit import Bandit
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.replay import replay
from de3bert.registry import unknown
from de3bert.runtime.engine import Backend, Outcome, run_batch, run_in_order, run_sorted
from de3bert.runtime.explain import explained_layers, lambda_of
from de3bert.runtime.facts import Facts
from de3bert.runtime.prediction import Explanation, Prediction
from de3bert.runtime.tracing import record
from de3bert.runtime.weights import weights_sha256

__all__ = ["Classifier", "TextInput"]

FULL = "full"
REMEMBERED = 256  # policies that need not be read again
WINDOW = 16  # batches that a stream reads ahead, to sort their rows by length


class Classifier:
    """A text classifier that stops at the layer its operating point allows.

    Example:
        >>> clf = de3bert.load("runs/demo/model")
        >>> clf.predict(["a joy from start to finish"], point="2x")
        [Prediction(label='positive', score=0.856, exit_layer=2, layers=6)]
    """

    def __init__(self, backend: Backend, source: str) -> None:
        self.backend = backend
        self.source = source
        self.config: Facts = backend.facts
        self.label_names = self.config.label_names
        self._chosen: dict[tuple[str | None, str | Policy | None], Policy] = {}
        self._bandits: dict[BanditRule, Bandit] = {}
        self.truncated = 0  # texts of the last call that were longer than the limit

    @property
    def depth(self) -> int:
        return int(self.backend.exit_layers[-1])

    @functools.cached_property
    def weights_sha256(self) -> str | None:
        """Names the weights; None for a model that is not a local folder."""
        return weights_sha256(self.source)

    @property
    def has_prototypes(self) -> bool:
        return self.backend.has_prototypes

    @property
    def has_router(self) -> bool:
        return self.backend.has_router

    @functools.cached_property
    def points(self) -> dict[str, OperatingPoint]:
        """The operating points stored in the model, by name."""
        stored = self.config.operating_points
        return {name: OperatingPoint.from_json(document) for name, document in stored.items()}

    def point_name(self, point: str | None = None) -> str:
        """The point that is used when `point` is asked for: the model's default for None."""
        return point or self.config.default_point or FULL

    def policy(self, point: str | None = None, policy: str | Policy | None = None) -> Policy:
        """The policy of a point, or the one given; the model's default when neither is."""
        asked = (point, policy)
        if asked not in self._chosen:  # reading a line of text takes as long as a small layer
            if len(self._chosen) >= REMEMBERED:
                self._chosen.clear()
            self._chosen[asked] = self._choose(point, policy)
        return self._chosen[asked]

    def _choose(self, point: str | None, policy: str | Policy | None) -> Policy:
        if policy is not None:
            if point is not None:
                raise UsageError("Give a point or a policy, not both.")
            chosen = Policy.parse(policy) if isinstance(policy, str) else policy
        else:
            chosen = self._point_policy(self.point_name(point))
        self._check(chosen)
        return chosen

    def predict(
        self,
        texts: Sequence[TextInput],
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
        batch_size: int = 32,
    ) -> list[Prediction]:
        """One prediction per text (or pair of texts), in input order.

        Rows that have left are dropped from the batch before the next layer; label and exit layer
        are those of one-by-one prediction, whatever the batch size.

        A bandit learns as it answers: its rows run one by one in input order, and the next call
        with the same policy goes on from there, until `forget`.
        """
        _check_batch_size(batch_size)
        chosen = self.policy(point, policy)
        rows = self.encode(texts)
        if not rows:
            return []
        if isinstance(chosen.rule, BanditRule):
            return self._predictions(run_in_order(self.backend, rows, self._bandit(chosen.rule)))
        if len(rows) <= batch_size:
            return self._predictions(run_batch(self.backend, rows, chosen))
        return self._predictions(run_sorted(self.backend, rows, chosen, batch_size))

    def forget(self) -> None:
        """Lets every bandit start anew, as if nothing had been predicted yet."""
        self._bandits.clear()

    def _bandit(self, rule: BanditRule) -> Bandit:
        """What was learned so far with these settings."""
        if rule not in self._bandits:
            self._bandits[rule] = rule.fresh(self.backend.exit_layers)
        return self._bandits[rule]

    def predict_iter(
        self,
        texts: Iterable[TextInput],
        point: str | None = None,
        *,
        policy: str | Policy | None = None,
        batch_size: int = 32,
    ) -> Iterator[Prediction]:
        """Predictions of a stream of texts, in order, without holding all of it in memory.

        Reads some batches ahead, so that rows of similar length share one. `truncated` counts over
        the whole stream.
        """
        _check_batch_size(batch_size)
        chosen = self.policy(point, policy)
        return self._stream(iter(texts), chosen, batch_size)

    def _stream(
        self, texts: Iterator[TextInput], policy: Policy, batch_size: int
    ) -> Iterator[Prediction]:
        cut = 0
        while ahead := list(itertools.islice(texts, WINDOW * batch_size)):
            answers = self.predict(ahead, policy=policy, batch_size=batch_size)
            cut += self.truncated
            self.truncated = cut
            yield from answers

    def encode(self, texts: Sequence[TextInput]) -> list[TokenRow]:
        """Token rows; counts in `truncated` the texts that were cut to the model's limit."""
        if isinstance(texts, str):
            raise UsageError("Give a list of texts; for one text pass [text].")
        bad = next((i for i, text in enumerate(texts) if not _is_text(text)), None)
        if bad is not None:
            raise UsageError(
                f"Text {bad + 1} of {len(texts)} is not a text or a pair of texts with something "
                f"in it: {texts[bad]!r}."
            )
        pairs = [isinstance(text, tuple) for text in texts]
        other = next((i for i, pair in enumerate(pairs) if pair != pairs[0]), None)
        if other is not None:
            raise UsageError(
                f"Text {other + 1} of {len(texts)} is not of the kind of the first: give single "
                "texts or pairs of texts, not both in one call."
            )
        encoded = self.backend.encoder(texts)
        self.truncated = encoded.truncated
        return encoded.rows

    def trace(
        self,
        texts: Sequence[TextInput],
        labels: np.ndarray | None = None,
        *,
        batch_size: int = 32,
        distances: bool | None = None,
        info: dict[str, Any] | None = None,
        progress: str | None = None,
    ) -> Trace:
        """One full-depth pass that records every exit: the material of curves and calibration.

        Distances are recorded where the model has prototypes, unless `distances` is False, and
        certainty where it has a router. Speed-ups on it refer to the model's `base_depth`.
        """
        _check_batch_size(batch_size)
        if distances is None:
            self._check_prototypes()
            distances = self.has_prototypes and len(self.backend.exit_layers) > 1
        rows = self.encode(texts)
        found = record(self.backend, rows, batch_size, distances=distances, progress=progress)
        return Trace(
            logits=found.logits,
            distances=found.distances,
            labels=labels,
            tokens=np.array([len(row["input_ids"]) for row in rows], dtype=np.int32),
            exit_layers=self.backend.exit_layers,
            label_names=self.label_names,
            info={
                "model": self.source,
                "method": self.config.method,
                "method_options": dict(self.config.method_options),
                **(info or {}),
            },
            certainty=found.certainty,
            base_depth=self.config.base_depth,
        )

    def explain(
        self, text: TextInput, point: str | None = None, *, policy: str | Policy | None = None
    ) -> Explanation:
        """Layer by layer, what each exit said of a text and where the policy let it go.

        Of a bandit it shows what it would do now; it learns nothing from being asked.
        """
        chosen = self.policy(point, policy)
        trace = self.trace([text], distances=False if self._unset_prototypes() else None)
        now = chosen
        if isinstance(chosen.rule, BanditRule):
            now = Policy(self._bandit(chosen.rule).present)
        left = int(replay(trace, now).exit_layers[0])
        layers = explained_layers(trace, left, lambda_of(chosen, self.config))
        own = next(row for row in layers if row.leaves)
        prediction = Prediction(own.label, own.score, left, self.depth)
        shown = text if isinstance(text, str) else " | ".join(text)
        return Explanation(shown, str(chosen), prediction, layers)

    def _predictions(self, outcome: Outcome) -> list[Prediction]:
        classes = outcome.logits.argmax(-1)
        scores = signals.max_probability(outcome.logits)
        return [
            Prediction(self.label_names[label], float(score), int(layer), self.depth)
            for label, score, layer in zip(classes, scores, outcome.exit_layers, strict=True)
        ]

    def _point_policy(self, point: str) -> Policy:
        points = self.points
        if point in points:
            return points[point].policy
        if point == FULL:
            return Policy.parse(FULL)
        raise UsageError(
            unknown("operating point", point, [FULL, *points])
            + f"\nMake one with: de3 calibrate {self.source} --data FILE --target layers=2.0 "
            f"--name {point}"
        )

    def _check(self, policy: Policy) -> None:
        policy.start(0, self.backend.exit_layers[:-1], self.depth)
        if policy.needs_distances:
            if not self.has_prototypes:
                raise UsageError(
                    f"The policy `{policy}` reads distances to prototypes, but this model has none "
                    f"(method {self.config.method}). Use an entropy policy such as `entropy < 0.2`."
                )
            self._check_prototypes()
        if policy.needs_certainty and not self.has_router:
            raise UsageError(
                f"The policy `{policy}` reads how sure a router is, but this model has none "
                f"(method {self.config.method}). Use an entropy policy such as `entropy < 0.2`."
            )

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


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1, got {batch_size}.")


def _is_text(value: object) -> bool:
    if isinstance(value, tuple):
        return len(value) == 2 and all(isinstance(part, str) and part.strip() for part in value)
    return isinstance(value, str) and bool(value.strip())
