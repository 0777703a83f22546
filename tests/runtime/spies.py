"""Recorders of what a classifier really computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from de3bert.runtime.classifier import Classifier


@dataclass
class Work:
    """(layer, rows, tokens) of each layer call, and the layers of heads and distances."""

    layers: list[tuple[int, int, int]] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    distances: list[int] = field(default_factory=list)

    @property
    def row_layers(self) -> int:
        """Rows summed over layer calls."""
        return sum(rows for _, rows, _ in self.layers)

    def clear(self) -> None:
        for calls in (self.layers, self.heads, self.distances):
            calls.clear()


def watch(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Puts recorders before the layers, the heads and the distances of a classifier."""
    work = Work()
    model = classifier.backend.model
    layer, classify, distances = model.encoder.layer, model.classify, model.distances

    def watched_layer(prepared: Any, number: int, hidden: Any) -> Any:
        work.layers.append((number, *hidden.shape[:2]))
        return layer(prepared, number, hidden)

    def watched_classify(pooled: Any, number: int) -> Any:
        work.heads.append(number)
        return classify(pooled, number)

    def watched_distances(pooled: Any, number: int) -> Any:
        work.distances.append(number)
        return distances(pooled, number)

    monkeypatch.setattr(model.encoder, "layer", watched_layer)
    monkeypatch.setattr(model, "classify", watched_classify)
    monkeypatch.setattr(model, "distances", watched_distances)
    return work
