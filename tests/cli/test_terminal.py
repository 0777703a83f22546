"""Verbs on a terminal: what they show does not steer it, and what cannot be written is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.warm import python

from de3bert.printable import UNSAFE

EVIL = "a good film \x1b[2J\x1b]0;owned\x07 \x9b31m \u202e"


def safe(said) -> bool:
    """Nothing but the carriage returns of progress bars, which are on stderr."""
    return not UNSAFE.search(said.out) and not UNSAFE.search(said.err.replace("\r", ""))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_texts_are_shown_escaped(de3, trained_model, tmp_path, more):
    said = de3("explain", trained_model, EVIL, *more)
    assert (said.code, safe(said)) == (0, True)
    assert "[2J" in said.out
    said = de3("predict", trained_model, *more, stdin=EVIL)
    assert (said.code, safe(said)) == (0, True)
    rows = tmp_path / "evil.csv"
    rows.write_text(f'text,label,"{EVIL}"\ngood,"{EVIL}",x\n', encoding="utf-8")
    for verb in ("evaluate", "calibrate"):
        point = ["--target", "layers=2.0", "--name", "p"] if verb == "calibrate" else []
        said = de3(verb, trained_model, "--data", rows, *point, *more)
        assert (said.code, safe(said)) == (2, True)


def test_names_of_classes_and_points_are_shown_escaped(de3, model_copy):
    path = model_copy / "config.json"
    config = json.loads(path.read_text())
    config["id2label"] = {"0": EVIL, "1": "[bold red]pos[/]"}
    path.write_text(json.dumps(config))
    for verb in (["inspect"], ["explain", "good"]):
        said = de3(verb[0], model_copy, *verb[1:])
        assert (said.code, safe(said)) == (0, True), said.err
        assert "[bold red]pos" in said.out or verb[0] == "explain"


def test_what_was_typed_is_shown_escaped(de3, trained_model):
    for wrong in (["pre\x1b[31mdict"], ["predict", trained_model, "--po\x1b[31mint"],
                  ["predict", trained_model, "--point", EVIL], ["inspect", f"no-{EVIL}"],
                  ["predict", trained_model, "--policy", EVIL]):  # fmt: skip
        said = de3(*wrong, stdin="good\n")
        assert (said.code, safe(said)) == (2, True)


def run(*arguments: str | Path, stdout: str) -> subprocess.CompletedProcess[str]:
    with Path(stdout).open("w") as out:
        return subprocess.run(
            [*python(), "-m", "de3bert.cli.main", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("verb", ["predict", "inspect"])
def test_a_full_disk_behind_stdout_is_said(trained_model, toy_data, verb):
    rows = [toy_data.test] if verb == "predict" else []
    ran = run(verb, trained_model, *rows, stdout="/dev/full")
    assert ran.returncode == 1
    assert "disk is full" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr
