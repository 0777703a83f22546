"""Toy studies for the tests: small files, a tiny encoder, trainings of a second."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import tomli_w
from tests.fixtures_trained import ToyData

from de3lab.study.execute import Study
from de3lab.study.spec import StudySpec, load_study

METHODS = [
    "full", "layers-2", "joint-entropy", "joint-entropy-calibrated", "pabee", "pcee", "de3",
    "oracle",
]  # fmt: skip
TRAININGS = 4  # of these methods: full, layers-2, joint-entropy, de3


def settings(backbone: Path | str, data: ToyData, **changes: Any) -> dict[str, Any]:
    """Two tasks, the first with two seeds; `changes` replace top-level settings."""
    task = {
        "name": "plain",
        "train": str(data.train),
        "test": {"test": str(data.test), "dev": str(data.calibration)},
        "rows": 240,
        "calibration_rows": 100,
        "max_length": 24,
        "seeds": [1, 2],
    }
    pair = {**task, "name": "both", "rows": 160, "metrics": ["f1", "accuracy"], "seeds": [1]}
    return {
        "title": "A toy <study> & its {{data}}",
        "backbone": str(backbone),
        "pooling": "mean",
        "methods": METHODS,
        "speeds": [1.25, 1.5, 2, 3],
        "train": {"epochs": 1, "batch_size": 16, "learning_rate": 3e-3, "save_steps": 8},
        "task": [task, pair],
        **changes,
    }


def spec_of(backbone: Path | str, data: ToyData, **changes: Any) -> StudySpec:
    return StudySpec.model_validate(settings(backbone, data, **changes))


def checked(given: dict[str, Any]) -> StudySpec:
    return StudySpec.model_validate(given)


def changed_task(given: dict[str, Any], number: int = 0, **changes: Any) -> dict[str, Any]:
    """The settings with one task changed; None removes a key."""
    made = copy.deepcopy(given)
    task = {**made["task"][number], **changes}
    made["task"][number] = {key: value for key, value in task.items() if value is not None}
    return made


def write_study(path: Path, given: dict[str, Any]) -> Path:
    path.write_text(tomli_w.dumps(given), encoding="utf-8")
    return path


def records(place: Path) -> dict[str, dict[str, Any]]:
    """Key -> record, without what differs from one execution to the next."""
    found = {}
    for path in sorted((place / "runs").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        for name in ("date", "command", "training_record"):
            del record[name]
        found[path.stem] = record
    return found


def study_of(folder: Path) -> Study:
    return Study(load_study(folder / "study.toml"), folder / "runs")
