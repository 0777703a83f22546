"""Long trainings say how far they are, also where nobody looks at a terminal."""

from __future__ import annotations

import pytest
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv

from de3bert.files import write_text
from de3bert.training.fit import fit
from de3bert.training.recipe import Recipe, recipe_from, recipe_text


@pytest.fixture
def recipe(tiny_backbone, toy_data, tmp_path) -> Recipe:
    made = toy_recipe(tiny_backbone, toy_data, epochs=2)
    made["data"]["train"] = str(write_csv(tmp_path / "s.csv", toy_rows(48, 5)))
    return recipe_from(made)


@pytest.fixture
def talkative(monkeypatch):
    monkeypatch.setattr("de3bert.progress.EVERY", 0.0)


def test_lines_without_a_terminal(recipe, tmp_path, talkative, capsys):
    refreshed = recipe_from(recipe.model_dump(), ["train.refresh_prototypes=true"])
    fit(refreshed, tmp_path / "m")
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert any(line.startswith("training: 1 of 6 steps, ") for line in lines)
    steps = [line for line in lines if line.startswith("training: 6 of 6 steps")]
    assert "loss " in steps[-1]
    assert "exits " in steps[-1]
    assert any("scoring the calibration rows" in line for line in lines if "training" in line)
    assert any(line.startswith("scoring the calibration rows: ") for line in lines)
    assert any(line.startswith("prototypes of all rows: ") for line in lines)
    assert "\x1b" not in "".join(line for line in lines if line.startswith("training"))


def test_every_phase_and_pass_has_its_name(recipe, tmp_path, talkative, capsys):
    changed = recipe_from(recipe.model_dump(), ["method=cascade-truncated", "train.epochs=1"])
    fit(changed, tmp_path / "m")
    said = capsys.readouterr().err
    for label in ("judge 1 of 3: ", "judge 3 of 3: ", "together: "):
        assert any(line.startswith(label) for line in said.splitlines()), label


def test_a_short_training_says_nothing(recipe, tmp_path, capsys):
    fit(recipe, tmp_path / "m")
    assert "training:" not in capsys.readouterr().err


def test_quiet_is_quiet(recipe, tmp_path, talkative, capsys):
    fit(recipe, tmp_path / "m", progress=False)
    said = capsys.readouterr().err
    assert "training:" not in said
    assert "scoring" not in said


def test_a_bar_on_a_terminal(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("de3bert.training.callbacks.on_terminal", lambda: True)
    fit(recipe, tmp_path / "m")
    said = capsys.readouterr().err
    assert "training: 1 of" not in said
    assert "6/6" in said


@pytest.mark.parametrize("quiet", [False, True])
def test_the_verb_says_how_far_the_test_rows_are(
    recipe, toy_data, tmp_path, talkative, capsys, quiet
):
    from typer.testing import CliRunner

    from de3bert.cli.main import app

    settings = recipe.model_dump()
    settings["data"]["test"] = str(toy_data.test)
    write_text(tmp_path / "r.toml", recipe_text(recipe_from(settings, ["train.epochs=0.4"])))
    call = ["train", "--recipe", str(tmp_path / "r.toml"), "--out", str(tmp_path / "m")]
    said = CliRunner().invoke(app, [*call, "--quiet"] if quiet else call)
    assert said.exit_code == 0, said.output
    assert ("scoring the test rows: " in said.stderr) == (not quiet)
    assert "full depth on test rows" in said.stdout
