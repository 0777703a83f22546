"""A trace: what every exit said about every row. Run the network once, then replay any policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits.view import ExitView
from de3bert.limits import check_limit
from de3bert.printable import cut_list

__all__ = ["Trace"]

MOST_TOKENS = 2**31 - 1  # as they are stored


@dataclass(frozen=True, eq=False)
class Trace:
    """The outputs of all exits on a data set, from one full-depth pass.

    Checked when made: shapes that fit together, finite values, labels in range.

    Attributes:
        logits: (rows, exits, classes) float32; the last exit is the final head.
        distances: cosine distances to the class prototypes, (rows, exits - 1, classes) float32;
            None when the model has no prototypes.
        labels: true classes, (rows,) int64; None when unknown.
        tokens: length of each row in tokens, (rows,) int32.
        exit_layers: the layer of each exit, increasing; the last is the depth of the model.
        label_names: the name of each class.
        info: what made it: model, data, hashes, versions, date. Must fit in JSON.
        certainty: how sure a router is that the exit is right, (rows, exits - 1) float32 in [0, 1];
            None when the model has no router.
        base_depth: layers of the model that speed-ups refer to, where that is not this model's
            depth: a model cut to 6 layers is compared with its backbone of 12.
        sentence: where rows are the words of sentences, the number of each word's sentence, from 0
            without gaps, (rows,) int64; `tokens` are the pieces of each word then. None: every row
            is a text, a sentence of one.
    """

    logits: NDArray[np.float32]
    distances: NDArray[np.float32] | None
    labels: NDArray[np.int64] | None
    tokens: NDArray[np.int32]
    exit_layers: tuple[int, ...]
    label_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    certainty: NDArray[np.float32] | None = None
    base_depth: int | None = None
    sentence: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen for everyone else
        set_field(self, "logits", np.ascontiguousarray(self.logits, dtype=np.float32))
        for name in ("distances", "certainty"):
            if (values := getattr(self, name)) is not None:
                set_field(self, name, np.ascontiguousarray(values, dtype=np.float32))
        if self.labels is not None:
            set_field(self, "labels", _whole(self.labels, "labels").astype(np.int64))
        set_field(self, "tokens", _whole(self.tokens, "tokens"))
        if self.sentence is not None:
            set_field(self, "sentence", _whole(self.sentence, "sentence").astype(np.int64))
        set_field(self, "exit_layers", tuple(int(layer) for layer in self.exit_layers))
        set_field(self, "label_names", tuple(str(name) for name in self.label_names))
        self._check_shapes()
        self._check_values()
        set_field(self, "tokens", self.tokens.astype(np.int32))

    @property
    def rows(self) -> int:
        return len(self.logits)

    @property
    def sentences(self) -> int:
        """How many rows leave by themselves: sentences, or texts."""
        return self.rows if self.sentence is None else int(self.sentence[-1]) + 1

    @property
    def weights(self) -> NDArray[np.int64]:
        """How much each row counts in mean layers: a text once, a word once for each piece."""
        if self.sentence is None:
            return np.ones(self.rows, dtype=np.int64)
        return self.tokens.astype(np.int64)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of everything that leaves by itself, texts or sentences. (sentences,)"""
        if self.sentence is None:
            return self.tokens.astype(np.int64)
        special = self.info.get("special_tokens")  # older files do not tell
        pieces = np.bincount(self.sentence, weights=self.tokens).astype(np.int64)
        return pieces + (special if isinstance(special, int) and special > 0 else 0)

    def last_exits(self, exit_index: NDArray[np.int64]) -> NDArray[np.int64]:
        """How far each text or sentence was run, from the exits of its units. -> (sentences,)"""
        if self.sentence is None:
            return exit_index
        starts = np.flatnonzero(np.diff(self.sentence, prepend=-1))
        return np.maximum.reduceat(exit_index, starts)

    @property
    def exits(self) -> int:
        """Number of exits, the final head included."""
        return len(self.exit_layers)

    @property
    def classes(self) -> int:
        return len(self.label_names)

    @property
    def depth(self) -> int:
        """Number of layers of the full model."""
        return self.exit_layers[-1]

    @property
    def base(self) -> int:
        """Number of layers that layer speed-ups refer to: `base_depth`, by default the depth."""
        return self.base_depth or self.depth

    @cached_property
    def predictions(self) -> NDArray[np.int64]:
        """The likeliest class at every exit, ties by the lower index. (rows, exits)"""
        return np.asarray(np.argmax(self.logits, axis=-1), dtype=np.int64)

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Whether each exit is right. (rows, exits)"""
        return np.asarray(self.predictions == self.known_labels[:, None])

    @property
    def known_labels(self) -> NDArray[np.int64]:
        """The labels, (rows,), or a UsageError when the trace has none."""
        if self.labels is None:
            raise UsageError(
                "This trace has no labels, so nothing can be scored. "
                "Make it again from data with a label column."
            )
        return self.labels

    def self_labelled(self) -> Trace:
        """The same rows labelled by the final exit: scores are then agreement with full depth."""
        return replace(self, labels=self.predictions[:, -1])

    def view(self, exit_index: int, rows: NDArray[np.int64] | slice = slice(None)) -> ExitView:
        """What exit number `exit_index` (from 0) shows a policy, for all rows or some of them."""
        return ExitView(
            self.exit_layers[exit_index],
            self.logits[rows, exit_index],
            None if self.distances is None else self.distances[rows, exit_index],
            certainty=None if self.certainty is None else self.certainty[rows, exit_index],
        )

    def take(self, index: NDArray[Any] | slice) -> Trace:
        """The trace of some rows: an index array, a mask or a slice."""
        sentence = None if self.sentence is None else self.sentence[index]
        if sentence is not None:  # renumbered, without gaps
            sentence = np.cumsum(np.diff(sentence, prepend=sentence[:1]) != 0)
        return replace(
            self,
            logits=self.logits[index],
            distances=None if self.distances is None else self.distances[index],
            labels=None if self.labels is None else self.labels[index],
            tokens=self.tokens[index],
            certainty=None if self.certainty is None else self.certainty[index],
            sentence=sentence,
        )

    def only(self, exit_layers: Iterable[int]) -> Trace:
        """The trace of the same model with fewer exits: those at `exit_layers`, and the final one.

        Every exit reads its own layer, so leaving some out changes nothing about the others.
        """
        numbers = self.exit_numbers(exit_layers)
        return replace(
            self,
            logits=self.logits[:, numbers],
            distances=None if self.distances is None else self.distances[:, numbers[:-1]],
            exit_layers=tuple(self.exit_layers[number] for number in numbers),
            certainty=None if self.certainty is None else self.certainty[:, numbers[:-1]],
        )

    def tempered(self, temperatures: Iterable[float]) -> Trace:
        """The trace with each exit's logits divided by its temperature, (exits,).

        Predicted classes stay; how sure the exits are of them changes. See `fit_temperatures`.
        """
        divisors = np.asarray(list(temperatures), dtype=np.float64)
        if divisors.shape != (self.exits,) or not (np.isfinite(divisors) & (divisors > 0)).all():
            raise UsageError(
                f"This trace needs {self.exits} temperatures above 0, one for each exit; "
                f"got {divisors.tolist()}."
            )
        return replace(self, logits=(self.logits / divisors[:, None]).astype(np.float32))

    def exit_numbers(self, exit_layers: Iterable[int]) -> list[int]:
        """The numbers, from 0 up, of the exits at these layers; the final one is always in."""
        wanted = {*exit_layers, self.depth}
        if strange := sorted(wanted - {*self.exit_layers}):
            layers = ", ".join(str(layer) for layer in self.exit_layers)
            raise UsageError(f"There is no exit at layer {strange[0]}. Exits are at: {layers}.")
        return [number for number, layer in enumerate(self.exit_layers) if layer in wanted]

    def save(self, path: str | Path) -> None:
        """Writes one safetensors file, whole or not at all."""
        from de3bert.exits.trace_file import write_trace

        write_trace(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Reads a saved trace; De3Error when it is missing, damaged or not a trace."""
        from de3bert.exits.trace_file import read_trace

        return read_trace(Path(path))

    def _check_shapes(self) -> None:
        if self.logits.ndim != 3 or 0 in self.logits.shape:
            raise _bad(
                f"logits must be (rows, exits, classes), none of them 0; got {self.logits.shape}"
            )
        rows, exits, classes = self.logits.shape
        if classes < 2:
            raise _bad(f"there must be at least 2 classes, got {classes}")
        if self.distances is not None and self.distances.shape != (rows, exits - 1, classes):
            raise _bad(
                f"distances must be {(rows, exits - 1, classes)} to fit the logits, "
                f"got {self.distances.shape}"
            )
        if self.certainty is not None and self.certainty.shape != (rows, exits - 1):
            raise _bad(
                f"certainty must be {(rows, exits - 1)} to fit the logits, "
                f"got {self.certainty.shape}"
            )
        for name, values in (("labels", self.labels), ("tokens", self.tokens)):
            if values is not None and values.shape != (rows,):
                raise _bad(f"{name} must be ({rows},) to fit the logits, got {values.shape}")
        self._check_sentences(rows)
        if len(self.label_names) != classes:
            found = cut_list(self.label_names)
            raise _bad(f"{classes} classes need {classes} label names, got {found or 'none'}")
        if len(set(self.label_names)) < classes:
            raise _bad(f"label names must differ, got {cut_list(self.label_names)}")
        self._check_layers(exits)

    def _check_sentences(self, rows: int) -> None:
        numbers = self.sentence
        if numbers is None:
            return
        sound = numbers.shape == (rows,) and numbers[0] == 0
        if not sound or not np.isin(np.diff(numbers), (0, 1)).all():
            raise _bad(
                f"`sentence` must give each of its {rows} words the number of its sentence, "
                "0, 0, 1, 1, 1, 2 ..."
            )

    def _check_layers(self, exits: int) -> None:
        layers = self.exit_layers
        rising = all(low < high for low, high in zip((0, *layers), layers, strict=False))
        if len(layers) != exits or not rising:
            raise _bad(
                f"exit_layers must be {exits} increasing layers from 1 up, got ({cut_list(layers)})"
            )
        base = self.base_depth
        if base is not None and (not isinstance(base, int) or base < 1):
            raise _bad(f"base_depth must be a whole number from 1 up, got {base!r}")
        check_limit("layers", max(layers[-1], base or 0), "This trace")

    def _check_values(self) -> None:
        for name, values in (("logits", self.logits), ("distances", self.distances)):
            if values is not None and not np.isfinite(values).all():
                row = int(np.argwhere(~np.isfinite(values))[0][0])
                raise _bad(f"{name} of row {row} are not finite (NaN or infinite)")
        if self.certainty is not None and not ((self.certainty >= 0) & (self.certainty <= 1)).all():
            raise _bad("certainty must lie in 0 to 1, and must not be NaN")
        if self.labels is not None and not _within(self.labels, self.classes - 1):
            found = f"{self.labels.min()} to {self.labels.max()}"
            raise _bad(f"labels must lie in 0 to {self.classes - 1}, got {found}")
        if self.tokens.min() < 0:
            raise _bad(f"token counts must not be negative, got {self.tokens.min()}")
        if self.tokens.max() > MOST_TOKENS:
            raise _bad(f"a row has at most {MOST_TOKENS} tokens, got {self.tokens.max()}")


def _bad(reason: str) -> De3Error:
    return De3Error(f"This is not a valid trace: {reason}.")


def _whole(values: NDArray[Any], name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise _bad(f"{name} must be whole numbers, got {array.dtype}")
    return array


def _within(values: NDArray[np.int64], highest: int) -> bool:
    return bool(values.min() >= 0 and values.max() <= highest)
