"""Verbs that other distributions bring, and modules that a user imports."""

from __future__ import annotations

import subprocess
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from tests.warm import python
from typer.testing import CliRunner

from de3bert.cli import verbs
from de3bert.errors import De3Error, UsageError

FOREIGN = """
EXAMPLE = "Example: de3 hello"
def run(name: str = "you") -> None:
    print(f"hello {name}")
"""


def app_with(points: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setattr(verbs, "entry_points", lambda group: points)
    app = typer.Typer()
    app.command("predict")(lambda: None)
    verbs.add_installed(app)
    return app


def point(name: str, module: str) -> EntryPoint:
    return EntryPoint(name, module, verbs.GROUP)


def test_a_distribution_brings_a_verb(tmp_path, monkeypatch):
    (tmp_path / "brings_hello.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(tmp_path)
    app = app_with([point("hello", "brings_hello")], monkeypatch)
    said = CliRunner().invoke(app, ["hello", "--name", "Ada"])
    assert said.output == "hello Ada\n"
    assert "--import" in CliRunner().invoke(app, ["hello", "--help"]).output


GROUPED = """
from de3bert.cli.options import DataOptions
EXAMPLE = "Example: de3 read a.csv"
def run(source: str, read: DataOptions, more: bool = False) -> None:
    print(source, read.named(), more)
"""


def test_options_may_come_as_a_group(tmp_path, monkeypatch):
    (tmp_path / "brings_read.py").write_text(GROUPED)
    monkeypatch.syspath_prepend(tmp_path)
    app = app_with([point("read", "brings_read")], monkeypatch)
    said = CliRunner().invoke(app, ["read", "--label-names", "a,b", "a.csv", "--split", "dev"])
    given = {"text": None, "text_pair": None, "label": None, "label_names": ["a", "b"]}
    assert said.output == f"a.csv {given | {'split': 'dev', 'config': None}} False\n"


@pytest.mark.parametrize("verb", ["compare", "analyze", "paper", "queue"])
def test_without_the_laboratory_its_verbs_say_how_to_get_it(verb, monkeypatch):
    app = app_with([], monkeypatch)
    for arguments in ([verb], [verb, "--help"], [verb, "study.toml", "--out", "x"]):
        error = CliRunner().invoke(app, arguments).exception
        assert isinstance(error, UsageError)
        assert "pip install de3lab" in str(error)


def test_a_verb_that_cannot_be_imported_takes_no_other_with_it(monkeypatch):
    app = app_with([point("broken", "no_such_module_at_all")], monkeypatch)
    assert CliRunner().invoke(app, ["predict"]).exit_code == 0
    error = CliRunner().invoke(app, ["broken", "--anything"]).exception
    assert isinstance(error, De3Error)
    assert "no_such_module_at_all" in str(error)
    assert "ModuleNotFoundError" in str(error)


def test_nobody_takes_the_name_of_a_verb_that_is_there(tmp_path, monkeypatch):
    (tmp_path / "brings_predict.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(tmp_path)
    app = app_with([point("predict", "brings_predict")], monkeypatch)
    assert CliRunner().invoke(app, ["predict"]).output == ""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [*python(), "-m", "de3bert.cli.main", *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_import_of_a_module_of_ones_own(tmp_path):
    (tmp_path / "margin.py").write_text(
        "from de3bert.methods import METHODS\n"
        "from dataclasses import replace\n"
        'METHODS.add("mine", replace(METHODS["de3"], name="mine", summary="of my own"))\n'
    )
    said = run(tmp_path, "methods", "mine", "--import", "margin")
    assert (said.returncode, said.stderr) == (0, "")
    assert "of my own" in said.stdout
    assert run(tmp_path, "methods", "mine").returncode == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [("import no_such_thing", "no_such_thing"), ("1 / 0", "ZeroDivisionError"), (None, "margin")],
)
def test_a_module_that_cannot_be_imported(tmp_path, text, reason):
    if text is not None:
        (tmp_path / "margin.py").write_text(text)
    said = run(tmp_path, "methods", "--import", "margin")
    assert said.returncode == 2
    assert "Traceback" not in said.stderr
    assert 'The module "margin" could not be imported' in said.stderr
    assert reason in said.stderr
