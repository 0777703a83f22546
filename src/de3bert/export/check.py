"""Is a bundle the model it was made of? Both read the same texts, and every exit is compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace, signals
from de3bert.exits.replay import margin, replay
from de3bert.runtime.classifier import Classifier

__all__ = ["CLOSE", "Agreement", "compare", "of_any_kind"]

CLOSE = 1e-4  # how far the signals of an fp32 bundle may be from the model's


@dataclass(frozen=True)
class Agreement:
    """How far a bundle is from its model.

    Attributes:
        rows: texts or words compared, at every exit.
        entropy, distance, logit: largest differences.
        near_threshold: rows within `CLOSE` of a threshold at some point, which are set aside.
        labels_equal, exits_equal: for all other rows, at every operating point and at full depth.
    """

    rows: int
    entropy: float
    distance: float
    logit: float
    near_threshold: int
    labels_equal: bool
    exits_equal: bool

    @property
    def signals(self) -> float:
        return max(self.entropy, self.distance)

    @property
    def close(self) -> bool:
        return self.signals <= CLOSE and self.labels_equal and self.exits_equal

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(model: Classifier[Any], bundle: Classifier[Any]) -> Agreement:
    """Runs both on inputs of all kinds and lengths, pairs of texts as well as single ones."""
    both = of_any_kind(model), of_any_kind(bundle)
    seen = [_both(*both, inputs) for inputs in model.task.samples]
    return Agreement(
        rows=sum(each.rows for each in seen),
        entropy=max(each.entropy for each in seen),
        distance=max(each.distance for each in seen),
        logit=max(each.logit for each in seen),
        near_threshold=sum(each.near_threshold for each in seen),
        labels_equal=all(each.labels_equal for each in seen),
        exits_equal=all(each.exits_equal for each in seen),
    )


def of_any_kind(classifier: Classifier[Any]) -> Classifier[Any]:
    made: Classifier[Any] = Classifier(classifier.backend, classifier.source)
    made.info = replace(classifier.info, text_pairs=None)
    return made


def _both(model: Classifier[Any], bundle: Classifier[Any], texts: tuple[Any, ...]) -> Agreement:
    distances = None if not model.backend.prototypes_unset else False
    layers = bundle.backend.exit_layers
    ours = bundle.trace(texts, distances=distances)
    theirs = model.trace(texts, distances=distances).only(layers)
    stored = [point.policy for point in bundle.points.values()]
    policies = [policy for policy in stored if _fits(policy, layers)]
    pairs = [_answers(theirs, ours, policy) for policy in policies if distances is None]
    apart = 0.0
    if ours.distances is not None and theirs.distances is not None:
        apart = float(np.abs(ours.distances - theirs.distances).max())
    entropies = [signals.entropy(each.logits.astype(np.float64)) for each in (ours, theirs)]
    return Agreement(
        rows=ours.rows,
        entropy=float(np.abs(entropies[0] - entropies[1]).max()),
        distance=apart,
        logit=float(np.abs(ours.logits - theirs.logits).max()),
        near_threshold=sum(near for near, _, _ in pairs),
        labels_equal=all(labels for _, labels, _ in pairs),
        exits_equal=all(exits for _, _, exits in pairs),
    )


def _fits(policy: Policy, layers: tuple[int, ...]) -> bool:
    """Whether it can run; a point at a layer whose exit was left out has nothing to compare."""
    try:
        policy.start(0, layers[:-1], layers[-1])
    except UsageError:
        return False
    return True


def _answers(theirs: Trace, ours: Trace, policy: Policy) -> tuple[int, bool, bool]:
    """Rows too near to a threshold to compare, and whether the others agree."""
    clear = margin(theirs, policy) > CLOSE
    first, second = replay(theirs, policy), replay(ours, policy)
    exits = bool((first.exit_layers == second.exit_layers)[clear].all())
    labels = bool((first.labels == second.labels)[clear].all())
    return int((~clear).sum()), labels, exits
