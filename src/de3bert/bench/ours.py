"""The bundle itself, at each of the operating points that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from de3bert.data.tokens import TokenRow
from de3bert.exits import Policy
from de3bert.exits.rules import Full
from de3bert.runtime.bundle_backend import BundleBackend
from de3bert.runtime.classifier import FULL, Classifier

__all__ = ["Ours", "at_points"]


@dataclass(frozen=True)
class Ours:
    """A bundle at one point.

    Attributes:
        pool: the back end that runs it, which has its own threads.
    """

    name: str
    precision: str
    pool: str
    point: str
    policy: Policy
    classifier: Classifier[Any]

    @property
    def full_depth(self) -> bool:
        return isinstance(self.policy.rule, Full)

    @property
    def graphs(self) -> str:
        """What runs a single text: `one graph`, or the `chain` of stretches that batches run."""
        backend = self.classifier.backend
        assert isinstance(backend, BundleBackend)  # see at_points
        return "one graph" if backend.alone(self.policy) else "chain"

    def tokenise(self, texts: Sequence[Any]) -> list[TokenRow]:
        return self.classifier.encode(texts).rows

    def predict(self, texts: Sequence[Any], batch_size: int) -> list[Any]:
        return self.classifier.predict(texts, policy=self.policy, batch_size=batch_size)


def at_points(
    classifier: Classifier[Any], points: Sequence[str] | None, prefix: str = "ours"
) -> list[Ours]:
    """One contender per point; None takes full depth and every point the bundle has."""
    backend, opening = classifier.backend, classifier.opening
    assert isinstance(backend, BundleBackend)  # see load_bundle
    assert opening is not None
    assert opening.backend is not None
    names = [FULL, *classifier.points] if points is None else points
    return [
        Ours(
            name=f"{prefix}:{name}",
            precision=backend.manifest.precision,
            pool=opening.backend,
            point=name,
            policy=classifier.policy(name),
            classifier=classifier,
        )
        for name in dict.fromkeys(names)
    ]
