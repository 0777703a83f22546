"""Every command of the guide runs as it is printed, in its order, without a hub.

On toy rows and a tiny encoder, which stand in for the demo's: it is the commands that are tested.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Command, de3
from tests.fixtures_trained import toy_rows, write_csv

__all__ = ["de3"]

DOCS = Path(__file__).parents[2] / "docs"
# Pages that go on from one another, as they say.
EXITS = ("attach.md", "guarantee.md", "keep-a-speed.md")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What a tiny encoder needs to learn something.
FASTER = ("--set", "train.learning_rate=3e-3", "--set", "train.batch_size=16")
SHORTER = ("--rounds", "1", "--texts", "5")
ROWS = {"train": 480, "dev": 80, "test": 60}


def blocks(page: str = "guide.md") -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def commands(block: str) -> list[str]:
    """The lines that call the program, without what stands behind a comment sign."""
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    return [line for line in lines if "de3 " in line and not line.startswith(("pip ", "#"))]


@pytest.fixture
def toy_demo(tmp_path, monkeypatch, tiny_backbone, request) -> Path:
    """A folder to work in, where the demo's rows and encoder are toys."""
    sizes = ROWS | getattr(request, "param", {})

    def write_reviews(folder: Path) -> list[Path]:
        folder.mkdir()
        made = []
        for seed, (name, count) in enumerate(sizes.items()):
            rows = [(f"{text} not so", label) for text, label in toy_rows(count, seed)]
            made.append(write_csv(folder / f"{name}.csv", rows))
        return made

    monkeypatch.setattr("de3bert.model.pretrained.minilm_folder", lambda: tiny_backbone)
    monkeypatch.setattr("de3bert.data.packaged.write_reviews", write_reviews)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_line(de3: Command, line: str) -> None:
    line = line.replace("speedup=2.5", "speedup=1.05")  # a tiny model is mostly fixed costs
    line = line.replace("within=0.05:0.95", "within=0.0:1.0")  # and much surer than a real one
    before, pipe, after = line.partition(" | ")
    stdin = " ".join(shlex.split(before)[1:]) + "\n" if pipe else ""
    words = shlex.split(after if pipe else before)
    target = None
    if ">" in words:
        target, words = words[words.index(">") + 1], words[: words.index(">")]
    if words[1] == "train" and "--recipe" not in words:
        words += FASTER
    if words[1] == "bench":
        words += SHORTER
    said = de3(*words[1:], "--quiet", stdin=stdin)
    assert said.code == 0, f"{line}\n{said.err}"
    if target:
        Path(target).write_text(said.out, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(1500)  # some forty commands, a dozen trainings among them
def test_every_command_runs_as_printed(toy_demo, de3):
    files = {}
    for kind, block in blocks():
        if kind == "toml":
            name, _, text = block.removeprefix("# ").partition("\n")
            files[name] = text
    assert set(files) == {"mine.toml", "study.toml"}
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    ran = 0
    for kind, block in blocks():
        if kind == "python":
            exec(compile(block, "guide", "exec"), {})
        for line in commands(block) if not kind else []:
            run_line(de3, line)
            ran += 1
    assert ran > 30


@pytest.mark.slow
@pytest.mark.parametrize("toy_demo", [{"dev": 500}], indirect=True)
def test_exits_promises_and_speeds_as_printed(toy_demo, de3):
    for page in EXITS:
        ran = 0
        for kind, block in blocks(page):
            if kind == "python":
                exec(compile(block, page, "exec"), {})
            for line in commands(block) if not kind else []:
                run_line(de3, line)
                ran += 1
        assert ran > 2
