"""What models answer, and how they explain it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["ExplainedLayer", "Explanation", "Prediction", "TaggedSentence"]


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

    A word beyond the model's length limit has no answer: its entries are None.

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


@dataclass(frozen=True)
class ExplainedLayer:
    """One exit's view of a text. What reads prototypes is None without them and at the end.

    So is `certainty`, what the exit's router says, without a router.
    """

    layer: int
    label: str
    score: float
    entropy: float
    distance: float | None  # to the prototype of the predicted class
    runner_up_distance: float | None
    distance_ratio: float | None
    edr: float | None
    leaves: bool
    certainty: float | None = None


@dataclass(frozen=True)
class Explanation:
    """Layer by layer, why a text left where it did. Prints as a table."""

    text: str
    policy: str
    prediction: Prediction
    layers: tuple[ExplainedLayer, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        routed = any(row.certainty is not None for row in self.layers)
        lines = [
            f"{self.text}",
            f"policy: {self.policy}",
            "layer  label            score  entropy  distance  next  ratio    EDR"
            + ("  certainty" if routed else ""),
        ]
        for row in self.layers:
            sure = f"  {_number(row.certainty, 9)}" if routed else ""
            mark = "  <- leaves here" if row.leaves else ""
            lines.append(
                f"{row.layer:5d}  {row.label:<15.15}  {row.score:.3f}  {row.entropy:7.3f}  "
                f"{_number(row.distance, 8)}  {_number(row.runner_up_distance, 4)}  "
                f"{_number(row.distance_ratio, 5)}  {_number(row.edr, 5)}{sure}{mark}"
            )
        return "\n".join(lines)


def _number(value: float | None, width: int) -> str:
    return "-".rjust(width) if value is None else f"{value:{width}.3f}"
