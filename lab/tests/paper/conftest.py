from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lab.tests.paper.toys import write_studies
from tests.cli.conftest import de3
from tests.fixtures_trained import once, toy_data

from de3lab.paper.folders import Folders
from de3lab.paper.items import ITEMS
from de3lab.paper.run import run_items

__all__ = ["de3", "toy_data"]

MADE = ("indicator", "exit-layers", "alpha", "shift", "space")


def folders_in(folder: Path) -> Folders:
    return Folders(folder / "studies", folder / "runs", folder / "results")


@pytest.fixture(scope="session")
def made(tmp_path_factory, tiny_backbone, toy_data) -> Path:
    """A folder with toy studies and what `de3 paper run` made of them. Not to be changed."""

    def build(folder: Path) -> None:
        folder.mkdir()
        write_studies(folder / "studies", tiny_backbone, toy_data)
        items = [ITEMS[name] for name in MADE]
        assert run_items(items, folders_in(folder), progress=False) == {}

    return once(tmp_path_factory, "paper", build)


@pytest.fixture
def made_copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "paper"))
