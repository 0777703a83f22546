"""The recipes hold what the paper chose (its table of hyper-parameters, written out here)."""

import tomllib
from importlib import resources

import pytest

RECIPES = resources.files("de3bert") / "recipes"

# task: batch size, learning rate, alpha, lambda, text, pair, metric
PAPER = {
    "mnli": (32, 2e-5, 1e-1, 0.667, "premise", "hypothesis", "accuracy"),
    "mrpc": (32, 3e-5, 1e-4, 1.5, "sentence1", "sentence2", "f1"),
    "qnli": (32, 3e-5, 1e-3, 2.0, "question", "sentence", "accuracy"),
    "qqp": (32, 2e-5, 1e-2, 0.667, "question1", "question2", "f1"),
    "rte": (16, 2e-5, 1e-1, 1.5, "sentence1", "sentence2", "accuracy"),
    "sst2": (32, 2e-5, 1e-1, 1.0, "sentence", None, "accuracy"),
}


@pytest.mark.parametrize("task", PAPER)
def test_recipe_holds_the_papers_values(task):
    text = (RECIPES / f"{task}.toml").read_text(encoding="utf-8")
    assert f"de3 train --recipe {task} --out runs/{task}" in text
    recipe = tomllib.loads(text)
    data, train, options = recipe["data"], recipe["train"], recipe["method_options"]
    found = (
        train["batch_size"],
        train["learning_rate"],
        options["alpha"],
        options["lambda"],
        data["text"],
        data.get("text_pair"),
        data["metric"],
    )
    assert found == PAPER[task]
    assert (recipe["method"], recipe["backbone"]) == ("de3", "google-bert/bert-base-uncased")
    assert (data["train"], data["config"], data["max_length"]) == ("nyu-mll/glue", task, 128)
    assert data["test_split"] == ("validation_matched" if task == "mnli" else "validation")
    assert data["train_split"] == "train"
    assert 0 < data["calibration_share"] < 0.5


@pytest.mark.parametrize("task", PAPER)
def test_recipe_searches_the_papers_grids_around_its_choice(task):
    recipe = tomllib.loads((RECIPES / f"{task}.toml").read_text(encoding="utf-8"))
    assert recipe["search"] == {
        "train.learning_rate": [1e-5, 2e-5, 3e-5, 5e-5],
        "train.batch_size": [16, 32, 128],
        "method_options.alpha": [1e-4, 1e-3, 1e-2, 1e-1],
    }
    for name, values in recipe["search"].items():
        section, option = name.split(".")
        assert recipe[section][option] in values


def test_there_are_no_other_recipes():
    names = {item.name for item in RECIPES.iterdir() if item.name.endswith(".toml")}
    assert names == {f"{task}.toml" for task in PAPER}
