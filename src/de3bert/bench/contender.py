"""Who takes part in a comparison: what a contender can do, and the table of those that exist.

All contenders take texts and return predictions, with the same length-sorted batching, so that the
times compare like with like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.material import Material
from de3bert.data.tokens import Encoded, TextInput, TokenRow
from de3bert.exits import signals
from de3bert.registry import Registry
from de3bert.tasks.answers import Prediction

__all__ = ["CONTENDERS", "HALF", "ORT_POOL", "Contender", "Maker", "Static", "find"]

HALF = "layer-k"  # also the name under which layer-1, layer-2 ... are registered
ORT_POOL = "onnx"  # all sessions of a process share one; pools have the names of back ends
NUMBERED = re.compile(r"layer-\d+")


class Contender(Protocol):
    """Something that classifies texts, to be timed."""

    @property
    def name(self) -> str: ...

    @property
    def precision(self) -> str:
        """fp32 or int8."""

    @property
    def pool(self) -> str:
        """Whose threads it runs on."""

    @property
    def full_depth(self) -> bool:
        """Whether every text runs through all layers of the model."""

    def tokenise(self, texts: Sequence[TextInput]) -> list[TokenRow]:
        """The first part of `predict`, to be timed separately."""

    def predict(self, texts: Sequence[TextInput], batch_size: int) -> list[Prediction]:
        """One prediction per text, in input order."""


@dataclass(frozen=True)
class Static:
    """A contender without exits: every text runs through the same layers.

    Attributes:
        layers: how many layers it runs; `depth` is how many the model has.
        encode: makes token rows of texts.
        logits: runs one batch of token rows, (rows, classes).
    """

    name: str
    precision: str
    layers: int
    depth: int
    label_names: tuple[str, ...]
    encode: Callable[[Sequence[TextInput]], Encoded]
    logits: Callable[[Sequence[TokenRow]], NDArray[np.float32]]
    pool: str = ORT_POOL

    @property
    def full_depth(self) -> bool:
        return self.layers == self.depth

    def tokenise(self, texts: Sequence[TextInput]) -> list[TokenRow]:
        return self.encode(texts).rows

    def predict(self, texts: Sequence[TextInput], batch_size: int) -> list[Prediction]:
        rows = self.tokenise(texts)
        if len(rows) <= batch_size:
            return self._predictions(self.logits(rows))
        order = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
        logits = np.zeros((len(rows), len(self.label_names)), dtype=np.float32)
        for start in range(0, len(rows), batch_size):
            chosen = order[start : start + batch_size]
            logits[chosen] = self.logits([rows[index] for index in chosen])
        return self._predictions(logits)

    def _predictions(self, logits: NDArray[np.float32]) -> list[Prediction]:
        """What `Classifier.predict` gives too, so that every contender does the same work."""
        classes = logits.argmax(-1)
        scores = signals.max_probability(logits)
        return [
            Prediction(self.label_names[label], float(score), self.layers, self.depth)
            for label, score in zip(classes, scores, strict=True)
        ]


Maker: TypeAlias = Callable[[], Contender]

# name -> checks whether the contender can be had (UsageError at once if not), and gives its maker.
CONTENDERS: Registry[Callable[[Material, str], Maker]] = Registry("contender")


def find(name: str) -> Callable[[Material, str], Maker]:
    """The entry for a name as the user gives it; `layer-6` is one of many forms of `layer-k`."""
    return CONTENDERS[HALF if NUMBERED.fullmatch(name) else name]
