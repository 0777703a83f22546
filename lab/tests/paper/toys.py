"""Toy studies under the names of the paper's: a tiny encoder, one task, trainings of a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w
from tests.fixtures_trained import ToyData

METHODS = {
    "paper_methods": ["full", "joint-entropy", "de3"],
    "paper_components": ["de3", "de3-no-pn", "de3-no-pn-no-dar"],
    "paper_alpha": ["de3"],
    "paper_shift": ["joint-entropy", "ceebert", "de3"],
}


def write_studies(folder: Path, backbone: Path, data: ToyData) -> None:
    """SST-2 stands for toy data everywhere; the shifted rows are its calibration file."""
    folder.mkdir()
    tests = {"test": str(data.test), "dev": str(data.calibration)}
    for name, methods in METHODS.items():
        test = {"imdb": str(data.calibration)} if name == "paper_shift" else tests
        text = tomli_w.dumps(_study(backbone, data, methods, test))
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def _study(
    backbone: Path, data: ToyData, methods: list[str], test: dict[str, str]
) -> dict[str, Any]:
    task = {
        "name": "sst2",
        "train": str(data.train),
        "test": test,
        "rows": 160,
        "calibration_rows": 100,
        "max_length": 24,
    }
    return {
        "title": "A toy",
        "backbone": str(backbone),
        "pooling": "mean",
        "methods": methods,
        "seeds": [1],
        "speeds": [1.5, 2, 3],
        "train": {"epochs": 1, "batch_size": 16, "learning_rate": 3e-3},
        "task": [task],
    }
