"""What models answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Prediction", "TaggedSentence"]


@dataclass(frozen=True)
class Prediction:
    """One answer.

    Attributes:
        label: the class.
        score: its probability at the exit taken.
        exit_layer: the layer that answered, counted from 1.
        layers: the depth of the model.
    """

    label: str
    score: float
    exit_layer: int
    layers: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


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
