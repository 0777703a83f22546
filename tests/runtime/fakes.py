"""A back end without a network: it says what a trace says, and notes what it was asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.data.tokens import Encoded
from de3bert.exits import Trace
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.manifest import is_bundle, sign
from de3bert.runtime.model_info import ModelInfo


@dataclass
class State:
    rows: np.ndarray  # numbers of the trace's rows
    layer: int = 0


@dataclass
class FakeBackend:
    """Text `7` is row 7 of the trace, as long as the trace says."""

    trace: Trace
    config: dict[str, Any] = field(default_factory=dict)
    batches: list[list[int]] = field(default_factory=list)  # rows of each batch that was started
    seen: list[tuple[int, int]] = field(default_factory=list)  # (row, layer) of logits handed over
    asked: list[int] = field(default_factory=list)  # layers whose certainty was asked for

    def __post_init__(self) -> None:
        router = "none" if self.trace.certainty is None else "lte"
        self.info = ModelInfo.of(
            {
                "id2label": dict(enumerate(self.trace.label_names)),
                "backbone_config": {},
                "exit_layers": self.trace.exit_layers,
                "max_length": 64,
                "method": "berxit" if router == "lte" else "joint-entropy",
                "pooling": "cls",
                "prototypes": "none",
                "router": router,
                **self.config,
            }
        )
        self.exit_layers = self.trace.exit_layers
        self.classes = self.trace.classes
        self.has_prototypes = False
        self.has_router = router != "none"
        self.prototypes_unset = ()

    def encoder(self, texts: Sequence[str]) -> Encoded:
        numbers = [int(text) for text in texts]
        rows = [{"input_ids": [row] * int(self.trace.tokens[row])} for row in numbers]
        return Encoded(rows, [False] * len(rows))

    def start(self, rows: Sequence[dict[str, list[int]]]) -> State:
        numbers = [row["input_ids"][0] for row in rows]
        self.batches.append(numbers)
        return State(np.asarray(numbers))

    def advance(self, state: State, layer: int, *, read: bool) -> tuple[State, np.ndarray | None]:
        after = State(state.rows, layer)
        if not read:
            return after, None
        self.seen += [(int(row), layer) for row in state.rows]
        return after, self.trace.logits[state.rows, self.exit_layers.index(layer)]

    def certainty(self, state: State, layer: int) -> np.ndarray:
        assert state.layer == layer
        self.asked.append(layer)
        assert self.trace.certainty is not None
        return self.trace.certainty[state.rows, self.exit_layers.index(layer)]

    def distances(self, state: State, layer: int) -> np.ndarray:
        raise AssertionError("there are no prototypes to ask")

    def keep(self, state: State, keep: np.ndarray) -> State:
        return State(state.rows[keep], state.layer)


def fake(trace: Trace, **config: Any) -> Classifier:
    """A classifier of the trace's rows; its texts are `texts_of(trace)`."""
    return Classifier(FakeBackend(trace, config), "fake")


def texts_of(trace: Trace) -> list[str]:
    return [str(row) for row in range(trace.rows)]


def of_any_kind(classifier: Classifier) -> Classifier:
    """The same model, which does not know whether it reads single texts or pairs."""
    made = Classifier(classifier.backend, classifier.source)
    made.info = replace(made.info, text_pairs=None)
    return made


def set_config(folder: Path, **changes: Any) -> Path:
    """Writes other values into a model's config, as whoever made the folder could have."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    if is_bundle(folder):
        sign(folder, path.name)
    return folder
