"""What models answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["Prediction", "TaggedSentence"]


class Answer:
    """What answers of all tasks have in common: `truncated` is told only where it is true."""

    truncated: bool

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)  # type: ignore[call-overload]  # subclasses are dataclasses
        if not self.truncated:
            del found["truncated"]
        return dict(found)

    def __repr__(self) -> str:
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        told = [name for name in names if name != "truncated" or self.truncated]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in told)})"


@dataclass(frozen=True, repr=False)
class Prediction(Answer):
    """One answer.

    Attributes:
        label: the class.
        score: its probability at the exit taken.
        exit_layer: the layer that answered, counted from 1.
        layers: the depth of the model.
        truncated: the text is longer than the model's limit; only what fits was read.
    """

    label: str
    score: float
    exit_layer: int
    layers: int
    truncated: bool = False


@dataclass(frozen=True, repr=False)
class TaggedSentence(Answer):
    """The tags of one sentence; every tuple has an entry for each word.

    A word beyond the model's length limit has no answer: its entries are None.

    Attributes:
        exit_layers: the layer that answered, counted from 1.
        pieces: how many tokens each word is.
        layers: the depth of the model.
        truncated: the sentence is longer than the model's limit.
    """

    words: tuple[str, ...]
    tags: tuple[str | None, ...]
    scores: tuple[float | None, ...]
    exit_layers: tuple[int | None, ...]
    pieces: tuple[int | None, ...]
    layers: int
    truncated: bool = False
