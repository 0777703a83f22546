"""Traces on disk and subjects of them, for the tests of analyses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.exits.traces import random_trace

from de3bert.exits import Trace
from de3lab.analysis import Subject


def toy_trace(rows: int = 120, exits: int = 6, classes: int = 2, seed: int = 0) -> Trace:
    return random_trace(rows, exits, classes, seed=seed)


def same_rows(trace: Trace, seed: int, noise: float = 0.5) -> Trace:
    """Another model's answers to the same rows."""
    chance = np.random.default_rng(seed)
    assert trace.distances is not None
    return replace(
        trace,
        logits=trace.logits + noise * chance.normal(size=trace.logits.shape),
        distances=np.clip(
            trace.distances + 0.2 * noise * chance.normal(size=trace.distances.shape), 0, 2
        ),
    )


def stored(
    folder: Path,
    name: str,
    trace: Trace,
    method: str = "de3",
    sha256: str | None = "abc",
    **info: Any,
) -> Path:
    """The trace as a file that says what made it."""
    about = {"method": method, "model": f"runs/{name}/model", **info}
    if sha256 is not None:
        about["data"] = {"sha256": sha256, "rows": trace.rows, "source": "toy.csv"}
    path = folder / f"{name}.trace"
    replace(trace, info=about).save(path)
    return path


def subject(
    folder: Path, name: str, trace: Trace, label: str | None = None, **info: Any
) -> Subject:
    return Subject(label or name, str(stored(folder, name, trace, **info)))
