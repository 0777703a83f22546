"""Small traces for the tests: hand-made, random and drawn by hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from de3bert.exits import Trace


def make_trace(logits: Any, labels: Any = None, distances: Any = None, **changes: Any) -> Trace:
    logits = np.asarray(logits, dtype=np.float32)
    rows, exits, classes = logits.shape
    fields: dict[str, Any] = {
        "logits": logits,
        "distances": None if distances is None else np.asarray(distances, dtype=np.float32),
        "labels": None if labels is None else np.asarray(labels),
        "tokens": np.full(rows, 7, dtype=np.int32),
        "exit_layers": tuple(range(1, exits + 1)),
        "label_names": tuple(f"class {k}" for k in range(classes)),
        "info": {"data": "toy"},
    }
    return Trace(**{**fields, **changes})


def random_trace(
    rows: int = 200, exits: int = 6, classes: int = 3, seed: int = 0, noise: float = 0.6
) -> Trace:
    """Exits that grow surer and better with depth, as those of a trained model do."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    truth = np.eye(classes)[labels][:, None, :]
    gain = np.linspace(0.5, 4.0, exits)[None, :, None]
    logits = gain * (truth + noise * rng.normal(size=(rows, exits, classes)))
    distances = np.clip(1.2 - truth + 0.4 * rng.normal(size=(rows, exits - 1, classes)), 0, 2)
    certainty = rng.beta(2, 2, size=(rows, exits - 1)) ** (1 / gain[:, :-1, 0])
    return make_trace(logits, labels, distances, certainty=certainty)


def constant_predictions(answers: list[int], classes: int = 2, label: int = 0) -> Trace:
    """One row whose exits predict the given classes."""
    return make_trace(np.eye(classes)[answers][None], [label])


@st.composite
def small_traces(draw: st.DrawFn) -> Trace:
    """A few rows with values from a tiny set, so that ties are everywhere."""
    rows, exits = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    classes = draw(st.integers(2, 3))

    def table(depth: int, values: list[float]) -> np.ndarray[Any, Any]:
        size = rows * depth * classes
        flat = draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))
        return np.reshape(flat, (rows, depth, classes))

    logits = table(exits, [-2.0, 0.0, 0.5, 1.0, 3.0])
    distances = table(exits - 1, [0.0, 0.25, 0.5, 1.0, 2.0])
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows))
    gaps = draw(st.lists(st.integers(1, 3), min_size=exits, max_size=exits))
    size = rows * (exits - 1)
    sure = draw(st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0]), min_size=size, max_size=size))
    return make_trace(
        logits,
        labels,
        distances,
        exit_layers=tuple(int(layer) for layer in np.cumsum(gaps)),
        certainty=np.reshape(sure, (rows, exits - 1)),
    )


def coherent_trace(rows: int = 1000, sure: float = 1.0, seed: int = 0, exits: int = 6) -> Trace:
    """Two classes, exits that mostly agree; with a lower `sure` all are less sure of the same."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    side = np.where(labels == 1, 1.0, -1.0)[:, None]
    depth = np.linspace(0.6, 1.5, exits)[None]
    margin = depth * (1.3 * side + rng.normal(size=(rows, 1))) + 0.5 * rng.normal(
        size=(rows, exits)
    )
    logits = np.stack([-margin, margin], axis=-1) * sure
    near = np.clip(1.0 - 0.3 * np.tanh(margin[:, :-1]), 0.01, 2)
    return make_trace(logits, labels, np.stack([2 - near, near], axis=-1))
