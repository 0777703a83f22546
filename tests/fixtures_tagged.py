"""Tiny taggers and their data, made once per test run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fixtures_trained import once
from tests.tagged import toy_sentences, word_recipe, write_conll, write_jsonl

__all__ = ["WordData", "de3_tagger", "sentee_model", "tokee_model", "word_data"]


@dataclass(frozen=True)
class WordData:
    train: Path
    calibration: Path
    test: Path


@pytest.fixture(scope="session")
def word_data(tmp_path_factory: pytest.TempPathFactory) -> WordData:
    def build(folder: Path) -> None:
        folder.mkdir()
        write_jsonl(folder / "train.jsonl", toy_sentences(320, 1))
        write_conll(folder / "calibration.conll", toy_sentences(60, 2))
        write_jsonl(folder / "test.jsonl", toy_sentences(60, 3))

    folder = once(tmp_path_factory, "word-data", build)
    return WordData(folder / "train.jsonl", folder / "calibration.conll", folder / "test.jsonl")


def _trained(factory: pytest.TempPathFactory, backbone: Path, data: WordData, method: str) -> Path:
    from de3bert.training.fit import fit
    from de3bert.training.recipe import recipe_from

    recipe = recipe_from(word_recipe(backbone, data.train, data.calibration, method))
    return once(factory, f"words-{method}", lambda out: fit(recipe, out, progress=False))


@pytest.fixture(scope="session")
def sentee_model(tmp_path_factory, tiny_backbone, word_data) -> Path:
    return _trained(tmp_path_factory, tiny_backbone, word_data, "sentee")


@pytest.fixture(scope="session")
def tokee_model(tmp_path_factory, tiny_backbone, word_data) -> Path:
    return _trained(tmp_path_factory, tiny_backbone, word_data, "tokee")


@pytest.fixture(scope="session")
def de3_tagger(tmp_path_factory, tiny_backbone, word_data) -> Path:
    return _trained(tmp_path_factory, tiny_backbone, word_data, "de3-words")
