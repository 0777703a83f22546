"""A finished study beside the product's material for fuzzing."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.tests.study.toys import write_study
from tests.fixtures_trained import once
from tests.fuzz.arena import Arena
from tests.fuzz.conftest import (
    arena,
    pointed_model,
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
    toy_data,
    trained_bundle,
    trained_model,
)

import de3lab
from de3lab.study.execute import Study
from de3lab.study.report import write_report
from de3lab.study.run import run_study
from de3lab.study.spec import load_study

__all__ = [
    "arena",
    "pointed_model",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "toy_data",
    "trained_bundle",
    "trained_model",
]


@pytest.fixture(scope="package")
def study(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with study.toml, runs and report of a finished study. Not to be changed."""
    materials = arena.materials
    made = once(
        tmp_path_factory,
        "fuzz-study",
        lambda folder: _finish(folder, materials.backbone, materials.rows),
    )
    arena.watch.readable += [str(made.resolve()), str(Path(de3lab.__file__).parent)]
    return made


def _finish(folder: Path, backbone: Path, rows: Path) -> None:
    """A study of one training, finished and reported."""
    folder.mkdir()
    task = {"name": "toy", "train": str(rows), "test": {"test": str(rows)}, "rows": 12,
            "calibration_rows": 8, "max_length": 16}  # fmt: skip
    given = {"backbone": str(backbone), "pooling": "mean", "methods": ["de3"], "speeds": [1.5, 2],
             "train": {"epochs": 1, "batch_size": 8}, "task": [task]}  # fmt: skip
    study = Study(load_study(write_study(folder / "study.toml", given)), folder / "runs", "de3")
    assert run_study(study, folder / "report", progress=False) == {}
    write_report(study, folder / "report")
