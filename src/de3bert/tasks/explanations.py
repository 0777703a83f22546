"""How models explain an answer: what every exit said, as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from de3bert.tasks.answers import Prediction, TaggedSentence

__all__ = ["ExplainedLayer", "ExplainedWord", "Explanation", "SentenceExplanation"]


@dataclass(frozen=True)
class ExplainedLayer:
    """One exit's view of a text or word. What reads prototypes is None without them and at the end.

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
        return {**asdict(self), "prediction": self.prediction.to_json()}

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


@dataclass(frozen=True)
class ExplainedWord:
    """One word of a sentence.

    Attributes:
        layers: what each exit said of it; a word that halts by itself has none behind that one, a
            word behind the model's length limit none at all.
        signal: the policy's signal at every exit before the last that it got to.
        decides: what the policy compared there with its threshold, the signal of the sentence or of
            the window around the word; empty for a policy without a threshold.
    """

    word: str
    layers: tuple[ExplainedLayer, ...]
    signal: tuple[float, ...]
    decides: tuple[float, ...]


@dataclass(frozen=True)
class SentenceExplanation:
    """Word by word and layer by layer, why a sentence left where it did. Prints as a table.

    Attributes:
        signal: which one the words show: the policy's, or entropy where it reads none.
        unit: what leaves as a whole, `sentence` or `word`.
    """

    policy: str
    signal: str
    unit: str
    prediction: TaggedSentence
    words: tuple[ExplainedWord, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        exits = max(self.words, key=lambda word: len(word.layers)).layers
        rows = [["", *(f"layer {exit_.layer}" for exit_ in exits)]]
        rows += [[word.word, *self._cells(word)] for word in self.words]
        first = self.words[0]
        if self.unit == "sentence" and first.decides:
            rows.append(["(sentence)", *(f"{value:.3f}" for value in first.decides)])
        shown = "the largest in the window" if self.unit == "word" else "of the word"
        return "\n".join([
            " ".join(word.word for word in self.words),
            f"policy: {self.policy}",
            f"tag and {self.signal} ({shown}); * is the exit taken",
            *_aligned(rows),
        ])  # fmt: skip

    def _cells(self, word: ExplainedWord) -> list[str]:
        numbers = word.decides if self.unit == "word" else word.signal
        known = [f" {value:.3f}" for value in numbers]
        known += [""] * (len(word.layers) - len(known))
        return [
            f"{exit_.label}{number}{'*' if exit_.leaves else ''}"
            for exit_, number in zip(word.layers, known, strict=True)
        ]


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]
    cells = ((cell.ljust(widths[at]) for at, cell in enumerate(row)) for row in rows)
    return ["  ".join(row).rstrip() for row in cells]
