"""Every command and every Python block of README and docs runs as printed, in its order.

On toy rows and tiny encoders, without a hub. Pages that go on from another run in its folder.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command, de3
from tests.docs.pages import Page, chains, commands, pages, split
from tests.docs.toy_demo import adapted, stand_in
from tests.fixtures_trained import toy_rows, trained_model, write_csv
from tests.training.classifiers import saved, tiny_classifier

__all__ = ["de3", "trained_model"]

CHAINS = chains()


@pytest.fixture
def toy_demo(tmp_path, monkeypatch, tiny_backbone) -> Path:
    """A folder to work in, where the demo's rows and encoder are toys."""
    stand_in(monkeypatch.setattr, tiny_backbone)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def readers_files(toy_demo, trained_model, tiny_tokenizer, de3) -> None:
    """What a reader of the README has: the demo's model, a classifier of their own, texts."""
    model = shutil.copytree(trained_model, toy_demo / "runs" / "demo" / "model")
    saved(tiny_classifier("distilbert"), tiny_tokenizer, toy_demo / "my-classifier")
    for seed, name in enumerate(("texts", "more", "new")):
        write_csv(toy_demo / f"{name}.csv", toy_rows(600, seed))
    said = de3("calibrate", model, "--data", "more.csv", "--target", "layers=1.5", "--name", "2x")
    assert said.code == 0, said.err


def run_line(de3: Command, line: str) -> None:
    piped, words, target = split(adapted(line))
    assert words[0] == "de3", line
    said = de3(*words[1:], "--quiet", stdin=piped)
    assert said.code == 0, f"{line}\n{said.err}"
    if target:
        Path(target).write_text(said.out, encoding="utf-8")


def run_page(de3: Command, page: Page) -> int:
    """Files of the page first, since it may show them behind the command that reads them."""
    for block in page.blocks:
        if block.kind == "toml" and block.text.startswith("# "):
            name, _, text = block.text.removeprefix("# ").partition("\n")
            Path(name).write_text(text, encoding="utf-8")
    ran = 0
    for block in page.blocks:
        if block.kind == "python" and block.title:  # a program of its own
            subprocess.run([sys.executable, "-c", block.text], check=True)
            ran += 1
        elif block.kind == "python":
            exec(compile(block.text, page.path, "exec"), {})
            ran += 1
        for line in commands(block):
            run_line(de3, line)
            ran += 1
    return ran


@pytest.mark.slow
@pytest.mark.timeout(1500)  # the longest has some thirty commands, a few trainings among them
@pytest.mark.parametrize("first", CHAINS)
def test_every_block_runs_as_printed(first, toy_demo, de3, request):
    if first == "README.md":
        request.getfixturevalue("readers_files")
    for page in CHAINS[first]:
        assert run_page(de3, page) > 0, page.path


def test_the_pages_are_those_there_are():
    assert {page.path for chain in CHAINS.values() for page in chain} == {
        page.path for page in pages()
    }
    ran = sum(len(commands(block)) for page in pages() for block in page.blocks)
    assert ran > 45
