from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from lab.tests.study.toys import settings, write_study
from tests.cli.conftest import de3
from tests.fixtures_trained import once, toy_data

from de3lab.study.execute import Study
from de3lab.study.report import write_report
from de3lab.study.run import run_study
from de3lab.study.spec import load_study

__all__ = ["de3", "toy_data"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory, tiny_backbone, toy_data) -> Path:
    """A folder with a finished toy study: study.toml, runs/, report/. Not to be changed."""

    def build(folder: Path) -> None:
        folder.mkdir()
        path = write_study(folder / "study.toml", settings(tiny_backbone, toy_data))
        study = Study(load_study(path), folder / "runs", "de3 compare study.toml")
        assert run_study(study, folder / "report", progress=False) == {}
        write_report(study, folder / "report")

    return once(tmp_path_factory, "study", build)


@pytest.fixture
def finished_copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "study"))


@pytest.fixture(scope="session")
def document(finished: Path) -> dict[str, Any]:
    """The `study.json` of the finished study."""
    return json.loads((finished / "report" / "study.json").read_text(encoding="utf-8"))
