"""Numbers in a label column: refused where a model knows names, unless it is said what they are."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.fixtures_trained import once

from de3bert.exits import Trace
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

USAGE = 2
NAMES = ("World", "Sports", "Business", "Sci/Tech")  # as the data set numbers them, 0 to 3
KEYS = (("good", "great"), ("bad", "awful"), ("joy", "bore"), ("loved", "hated"))
OPTION = ("--label-names", ",".join(NAMES))


def write_rows(path: Path, rows: int, seed: int, *, named: bool) -> Path:
    """Texts that tell their class by one word; labels are names, or the data set's numbers."""
    chance = random.Random(seed)
    lines = []
    for index in range(rows):
        number = index % len(NAMES)
        words = [chance.choice(KEYS[number]), *chance.choices(("film", "plot", "the", "a"), k=3)]
        chance.shuffle(words)
        label = NAMES[number] if named else number
        lines.append(json.dumps({"text": " ".join(words), "label": label}))
    path.write_text("\n".join(lines) + "\n")
    return path


def recipe_of(backbone: Path, train: Path, **data: object) -> dict:
    return {
        "backbone": str(backbone),
        "pooling": "mean",
        "data": {"train": str(train), "max_length": 24, **data},
        "train": {"epochs": 5, "batch_size": 16, "learning_rate": 3e-3},
    }


@pytest.fixture(scope="session")
def news(tmp_path_factory: pytest.TempPathFactory, tiny_backbone: Path) -> Path:
    """A model that learned four classes by name, and rows with their names and their numbers."""

    def build(folder: Path) -> None:
        folder.mkdir()
        write_rows(folder / "train.jsonl", 240, 1, named=True)
        write_rows(folder / "named.jsonl", 80, 2, named=True)
        write_rows(folder / "numbered.jsonl", 80, 2, named=False)
        recipe = recipe_from(recipe_of(tiny_backbone, folder / "train.jsonl"))
        fit(recipe, folder / "model", progress=False)

    return once(tmp_path_factory, "news", build)


def test_a_model_of_names_refuses_numbers(de3, news):
    said = de3("evaluate", news / "model", "--data", news / "numbered.jsonl", "--json")
    assert (said.code, said.out) == (USAGE, "")
    both = "the numbers 0, 1, 2, 3; the model knows Business, Sci/Tech, Sports, World"
    assert both in said.err
    assert "--label-names" in said.err


def test_with_the_names_the_score_is_the_right_one(de3, news):
    model = news / "model"
    named = de3("evaluate", model, "--data", news / "named.jsonl", "--json").json
    said = de3("evaluate", model, "--data", news / "numbered.jsonl", *OPTION, "--json").json
    assert said["score"] == named["score"] > 0.9
    pairs = ",".join(f"{number}={name}" for number, name in enumerate(NAMES))
    data = news / "numbered.jsonl"
    again = de3("evaluate", model, "--data", data, "--label-names", pairs, "--json").json
    assert again["score"] == named["score"]


def test_the_other_verbs_take_the_names_too(de3, news, tmp_path):
    model, data = news / "model", news / "numbered.jsonl"
    for verb, more in (
        ("trace", ("--out", tmp_path / "a.trace")),
        ("calibrate", ("--target", "full", "--name", "all")),
    ):
        refused = de3(verb, model, "--data", data, *more)
        assert refused.code == USAGE, refused.err
        assert "--label-names" in refused.err
    said = de3("trace", model, "--data", data, "--out", tmp_path / "a.trace", *OPTION, "--json")
    assert (said.code, said.json["labelled"]) == (0, True)
    assert Trace.load(tmp_path / "a.trace").correct[:, -1].mean() > 0.9


def test_names_that_the_model_does_not_know_are_said(de3, news):
    names = "World,Sports,business,Sci/Tech"
    data = news / "numbered.jsonl"
    said = de3("evaluate", news / "model", "--data", data, "--label-names", names)
    assert said.code == USAGE
    assert '"business" (20x; did you mean "Business"?)' in said.err


def test_training_with_names_for_the_numbers(de3, news, tiny_backbone, tmp_path):
    out = tmp_path / "model"
    train = write_rows(tmp_path / "train.jsonl", 240, 1, named=False)
    said = de3(
        "train", "--data", train, "--backbone", tiny_backbone, "--out", out, *OPTION,
        "--set", "train.epochs=1", "--set", "train.learning_rate=3e-3",
        "--set", "data.max_length=24", "--set", "pooling=mean", "--json", "--quiet",
    )  # fmt: skip
    assert said.code == 0, said.err
    config = json.loads((out / "config.json").read_text())
    assert [config["id2label"][str(k)] for k in range(4)] == list(NAMES)
    assert config["numbered_labels"]
    # It was taught which number is which: both kinds of rows are understood, and agree.
    found = [
        de3("evaluate", out, "--data", news / name, "--json").json["score"]
        for name in ("named.jsonl", "numbered.jsonl")
    ]
    assert found[0] == found[1]


def test_a_model_of_numbers_refuses_names(de3, news, tiny_backbone, tmp_path):
    train = write_rows(tmp_path / "train.jsonl", 80, 1, named=False)
    recipe = recipe_of(tiny_backbone, train)
    fit(recipe_from({**recipe, "train": {"epochs": 1}}), tmp_path / "model", progress=False)
    said = de3("evaluate", tmp_path / "model", "--data", news / "named.jsonl")
    assert said.code == USAGE
    assert "names Business, Sci/Tech, Sports, World; the model knows the numbers 0, 1" in said.err
    data = news / "named.jsonl"
    numbers = news / "numbered.jsonl"
    by_name = de3("evaluate", tmp_path / "model", "--data", data, *OPTION, "--json").json
    by_number = de3("evaluate", tmp_path / "model", "--data", numbers, "--json").json
    assert by_name["score"] == by_number["score"]
