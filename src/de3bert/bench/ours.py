"""The bundle itself, at each of the operating points that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from de3bert.bench.contender import ORT_POOL
from de3bert.data.tokens import TextInput, TokenRow
from de3bert.exits import Policy
from de3bert.exits.rules import Full
from de3bert.runtime.classifier import FULL, Classifier
from de3bert.runtime.onnx_backend import OnnxBackend
from de3bert.tasks.answers import Prediction

__all__ = ["Ours", "at_points"]


@dataclass(frozen=True)
class Ours:
    """A bundle at one point."""

    name: str
    precision: str
    point: str
    policy: Policy
    classifier: Classifier

    @property
    def pool(self) -> str:
        return ORT_POOL

    @property
    def full_depth(self) -> bool:
        return isinstance(self.policy.rule, Full)

    def tokenise(self, texts: Sequence[TextInput]) -> list[TokenRow]:
        return self.classifier.encode(texts)

    def predict(self, texts: Sequence[TextInput], batch_size: int) -> list[Prediction]:
        return self.classifier.predict(texts, policy=self.policy, batch_size=batch_size)


def at_points(
    classifier: Classifier, points: Sequence[str] | None, prefix: str = "ours"
) -> list[Ours]:
    """One contender per point; None takes full depth and every point the bundle has."""
    backend = classifier.backend
    assert isinstance(backend, OnnxBackend)  # see load_bundle
    names = [FULL, *classifier.points] if points is None else points
    return [
        Ours(f"{prefix}:{name}", backend.manifest.precision, name, classifier.policy(name),
             classifier)
        for name in dict.fromkeys(names)
    ]  # fmt: skip
