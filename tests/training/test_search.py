"""Searching settings: each combination is trained once, the best model is kept."""

from __future__ import annotations

import json

import pytest
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv

import de3bert
from de3bert.errors import UsageError
from de3bert.training import fit as fit_module
from de3bert.training.recipe import recipe_from
from de3bert.training.search import search

RATES = [1e-7, 3e-3]


@pytest.fixture
def settings(tiny_backbone, toy_data, tmp_path):
    made = toy_recipe(tiny_backbone, toy_data, epochs=2)
    made["data"]["train"] = str(write_csv(tmp_path / "s.csv", toy_rows(160, 5)))
    return {**made, "search": {"train.learning_rate": RATES}}


@pytest.fixture
def trainings(monkeypatch):
    """The learning rates that were really trained."""
    rates: list[float] = []
    fit = fit_module.fit

    def counted(recipe, *args, **kwargs):
        rates.append(recipe.train.learning_rate)
        return fit(recipe, *args, **kwargs)

    monkeypatch.setattr(fit_module, "fit", counted)
    return rates


def test_the_grid_is_trained_once_and_the_best_kept(settings, trainings, tmp_path):
    recipe = recipe_from(settings)
    found = search(recipe, tmp_path / "out", progress=False)
    assert trainings == RATES
    assert [trial.settings["train.learning_rate"] for trial in found.trials] == RATES
    assert found.trials[1].score > found.trials[0].score
    kept = (tmp_path / "out" / "best" / "recipe.toml").read_text()
    assert "learning_rate = 0.003" in kept
    assert de3bert.load(found.best).predict(["a great joy"])[0].label == "pos"
    listed = json.loads((tmp_path / "out" / "search.json").read_text())["trials"]
    assert [trial["score"] for trial in listed] == [trial.score for trial in found.trials]

    again = search(recipe, tmp_path / "out", progress=False)
    assert trainings == RATES  # none more
    assert again.trials == found.trials

    changed = recipe_from(settings, ["train.seed=5"])
    search(changed, tmp_path / "out", progress=False, trials=1)
    assert len(trainings) == 3  # trials of another recipe are not taken over


def test_optuna_proposes_as_many_as_asked(settings, trainings, tmp_path):
    settings["search"]["method_options.alpha"] = [0.01, 0.1]
    found = search(
        recipe_from(settings), tmp_path / "out", sampler="optuna", trials=2, progress=False
    )
    assert len(found.trials) == 2
    assert 1 <= len(trainings) <= 2  # the same proposal twice is trained once
    for trial in found.trials:
        assert trial.settings["train.learning_rate"] in RATES
        assert trial.settings["method_options.alpha"] in (0.01, 0.1)
    assert max(trial.score for trial in found.trials) == pytest.approx(
        next(trial.score for trial in found.trials if _same(trial.folder, found.best))
    )


def _same(folder: str, best: str) -> bool:
    from pathlib import Path

    name = "model.safetensors"
    return (Path(folder) / name).read_bytes() == (Path(best) / name).read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"search": {}}, r"no \[search\] section"),
        ({"search": {"train.learning_rate": []}}, "no values for train.learning_rate"),
        ({"search": {"train.lr": [1.0]}}, "train.lr: Extra inputs"),
    ],
)
def test_a_search_that_cannot_start(settings, trainings, tmp_path, change, words):
    with pytest.raises(UsageError, match=words):
        search(recipe_from({**settings, **change}), tmp_path / "out", progress=False)
    assert trainings == []


def test_an_unknown_sampler(settings, tmp_path):
    with pytest.raises(UsageError, match="Available: grid, optuna"):
        search(recipe_from(settings), tmp_path / "out", sampler="random", progress=False)
