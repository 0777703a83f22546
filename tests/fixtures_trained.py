"""A tiny trained classifier and its toy data, built once per test run and shared by all workers."""

from __future__ import annotations

import csv
import os
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

POSITIVE = ("good", "great", "fine", "joy", "loved", "best")
NEGATIVE = ("bad", "awful", "dull", "bore", "hated", "worst")
NEUTRAL = ("film", "movie", "story", "actor", "plot", "scene", "the", "a", "was", "is", "it")
NOISE = 0.08  # share of wrong labels: exits stay unsure of some rows, and no policy is perfect


@dataclass(frozen=True)
class ToyData:
    """Three labelled CSV files with the columns id, text and label."""

    train: Path
    calibration: Path
    test: Path


def toy_rows(rows: int, seed: int) -> list[tuple[str, str]]:
    """Texts with their classes: the words of one side outnumber the other's, by more or by less."""
    chance = random.Random(seed)
    made = []
    for index in range(rows):
        label, own, other = (
            ("pos", POSITIVE, NEGATIVE) if index % 2 else ("neg", NEGATIVE, POSITIVE)
        )
        contrary = chance.choice((0, 0, 0, 1, 2))
        words = chance.choices(own, k=contrary + chance.choice((1, 1, 2)))
        words += chance.choices(other, k=contrary) + chance.choices(NEUTRAL, k=chance.randint(0, 8))
        chance.shuffle(words)
        if chance.random() < NOISE:
            label = "neg" if label == "pos" else "pos"
        made.append((" ".join(words), label))
    return made


def write_csv(path: Path, rows: Sequence[tuple[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        writer.writerows([index, text, label] for index, (text, label) in enumerate(rows))
    return path


def toy_recipe(backbone: Path, data: ToyData, **changes: Any) -> dict[str, Any]:
    """Settings that teach the tiny encoder the toy task in seconds; `changes` go to [train]."""
    return {
        "backbone": str(backbone),
        "method": "de3",
        "pooling": "mean",
        "data": {"train": str(data.train), "calibration": str(data.calibration), "max_length": 24},
        "train": {"epochs": 3, "batch_size": 16, "learning_rate": 3e-3, **changes},
    }


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """A folder that the first worker to ask builds and all others find ready."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / f"shared-{name}"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            building = root / f"building-{name}"
            shutil.rmtree(building, ignore_errors=True)
            build(building)
            building.rename(folder)
    return folder


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> ToyData:
    def build(folder: Path) -> None:
        folder.mkdir()
        for name, rows, seed in (("train", 480, 1), ("calibration", 120, 2), ("test", 120, 3)):
            write_csv(folder / f"{name}.csv", toy_rows(rows, seed))

    folder = once(tmp_path_factory, "toy-data", build)
    return ToyData(folder / "train.csv", folder / "calibration.csv", folder / "test.csv")


@pytest.fixture(scope="session")
def trained_model(
    tmp_path_factory: pytest.TempPathFactory, tiny_backbone: Path, toy_data: ToyData
) -> Path:
    """A DE3 model that learnt the toy task. Not to be changed: see `model_copy`."""
    from de3bert.training.fit import fit
    from de3bert.training.recipe import recipe_from

    recipe = recipe_from(toy_recipe(tiny_backbone, toy_data))
    return once(tmp_path_factory, "model", lambda out: fit(recipe, out, progress=False))


@pytest.fixture
def model_copy(trained_model: Path, tmp_path: Path) -> Path:
    """The trained model, to spoil or to write in."""
    return Path(shutil.copytree(trained_model, tmp_path / "model"))
