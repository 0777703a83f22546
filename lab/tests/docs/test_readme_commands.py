"""The commands of the laboratory's README run as printed, on toy rows and a tiny encoder."""

from __future__ import annotations

import shutil

import pytest
from tests.cli.conftest import de3
from tests.docs.pages import commands, page
from tests.docs.test_pages import run_page
from tests.docs.toy_demo import stand_in, write_reviews
from tests.fixtures_trained import toy_data, trained_model

__all__ = ["de3", "toy_data", "trained_model"]


@pytest.mark.slow
@pytest.mark.timeout(900)  # a study with eight trainings
def test_every_command_runs_as_printed(tmp_path, monkeypatch, tiny_backbone, trained_model, de3):
    stand_in(monkeypatch.setattr, tiny_backbone)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained_model, "runs/mine")
    write_reviews(tmp_path / "reviews")
    for name in ("dev", "bundle"):
        made = de3("trace", "runs/mine", "--data", "reviews/dev.csv", "--out", f"{name}.trace")
        assert made.code == 0, made.err
    readme = page("lab/README.md")
    assert run_page(de3, readme) == sum(len(commands(block)) for block in readme.blocks) > 6
