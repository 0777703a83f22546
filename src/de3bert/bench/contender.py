"""Who takes part in a comparison: what a contender can do, and the table of those that exist.

All contenders take texts and return predictions, with the same length-sorted batching, so that the
times compare like with like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.material import BenchMaterial
from de3bert.data.tokens import Encoded, TokenRow, first_pieces, units_of
from de3bert.registry import Registry
from de3bert.runtime.engine import in_batches
from de3bert.tasks.task import Outcome, Task

__all__ = ["CONTENDERS", "HALF", "ORT_POOL", "Contender", "Maker", "Static", "find", "static"]

HALF = "layer-k"  # also the name under which layer-1, layer-2 ... are registered
ORT_POOL = "onnx"  # all sessions of a process share one; pools have the names of back ends
NUMBERED = re.compile(r"layer-\d+")


class RowEncoder(Protocol):
    """Texts to token rows, and token rows to a batch: torch's tensors, or numpy's arrays."""

    def __call__(self, texts: Sequence[Any], /) -> Encoded: ...

    def pad(self, rows: Sequence[TokenRow]) -> Mapping[str, Any]: ...


class Contender(Protocol):
    """Something that classifies texts or tags sentences, to be timed."""

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

    def tokenise(self, texts: Sequence[Any]) -> list[TokenRow]:
        """The first part of `predict`, to be timed separately."""

    def predict(self, texts: Sequence[Any], batch_size: int) -> list[Any]:
        """One answer of the task per text, in input order."""


@dataclass(frozen=True)
class Static:
    """A contender without exits: every text runs through the same layers.

    Attributes:
        layers: how many layers it runs; `depth` is how many the model has.
        encode: makes token rows of texts.
        logits: runs one batch of token rows, (units, classes).
    """

    name: str
    precision: str
    layers: int
    depth: int
    task: Task[Any]
    label_names: tuple[str, ...]
    encode: Callable[[Sequence[Any]], Encoded]
    logits: Callable[[Sequence[TokenRow]], NDArray[np.float32]]
    pool: str = ORT_POOL

    @property
    def full_depth(self) -> bool:
        return self.layers == self.depth

    def tokenise(self, texts: Sequence[Any]) -> list[TokenRow]:
        return self.encode(texts).rows

    def predict(self, texts: Sequence[Any], batch_size: int) -> list[Any]:
        encoded = self.encode(texts)
        rows = encoded.rows
        if len(rows) <= batch_size:
            logits = self.logits(rows)
        else:
            units = int(units_of(rows).sum())
            logits = np.zeros((units, len(self.label_names)), dtype=np.float32)
            for chosen, own in in_batches(rows, batch_size):
                logits[own] = self.logits([rows[index] for index in chosen])
        layers = np.full(len(logits), self.layers, dtype=np.int64)
        # What `Classifier.predict` gives too, so that nobody is spared work that others do.
        outcome = Outcome(layers, logits)
        return self.task.answers(texts, encoded, outcome, self.label_names, self.depth)


def static(
    material: BenchMaterial,
    name: str,
    run: Callable[[Mapping[str, Any]], NDArray[np.float32]],
    encoder: RowEncoder,
    *,
    precision: str = "fp32",
    layers: int | None = None,
    pool: str = ORT_POOL,
) -> Static:
    """A contender from what runs a padded batch: logits (rows, classes) or (rows, tokens, classes).

    Args:
        layers: by default all.
    """

    def logits(rows: Sequence[TokenRow]) -> NDArray[np.float32]:
        padded = encoder.pad(rows)
        return _of_units(run(padded), padded)

    return Static(
        name=name,
        precision=precision,
        layers=layers or material.depth,
        depth=material.depth,
        task=material.task,
        label_names=material.label_names,
        encode=encoder,
        logits=logits,
        pool=pool,
    )


def _of_units(logits: NDArray[np.float32], padded: Mapping[str, Any]) -> NDArray[np.float32]:
    """Of what a model says of a batch that which counts: of words their first tokens.

    Args:
        logits: (rows, classes), or (rows, tokens, classes) where the batch has `word_ids`.
    """
    if "word_ids" not in padded:
        return logits
    return logits[first_pieces(np.asarray(padded["word_ids"]))]


Maker: TypeAlias = Callable[[], Contender]

# name -> checks whether the contender can be had (UsageError at once if not), and gives its maker.
CONTENDERS: Registry[Callable[[BenchMaterial, str], Maker]] = Registry("contender")


def find(name: str) -> Callable[[BenchMaterial, str], Maker]:
    """The entry for a name as the user gives it; `layer-6` is one of many forms of `layer-k`."""
    return CONTENDERS[HALF if NUMBERED.fullmatch(name) else name]
