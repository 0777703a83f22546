"""A model in one file, some texts, and what the examples need to run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import TINY_WORDS
from tests.examples.chromium import Chromium
from tests.examples.reference import BROWSER, NODE
from tests.export.bundles import pointed_model, trained_bundle
from tests.fixtures_trained import once, toy_data, toy_rows, trained_model

__all__ = ["pointed_model", "toy_data", "trained_bundle", "trained_model"]


@pytest.fixture(scope="session")
def one_file(tmp_path_factory: pytest.TempPathFactory, trained_bundle: Path) -> Path:
    """As the page wants it: with a record of the exits, and without defaults."""
    from de3bert.export.one_file import export_one_file

    def build(folder: Path) -> None:
        folder.mkdir()
        export_one_file(trained_bundle, folder / "model.onnx", record=True, no_defaults=True)

    return once(tmp_path_factory, "one-file", build) / "model.onnx"


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Toy texts, one longer than the model takes, one of unknown words."""
    long = " ".join(TINY_WORDS[5:45])
    return [*(text for text, _ in toy_rows(24, 5)), long, "naïve 你好 🙂", "Good, BAD... film?"]


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node here")
    if not (NODE / "node_modules").exists():
        pytest.skip("the packages of the example are not there: make examples-js")
    return found


@pytest.fixture(scope="session")
def page_libraries() -> Path:
    if not (BROWSER / "node_modules").exists():
        pytest.skip("the packages of the page are not there: make examples-js")
    return BROWSER / "node_modules"


@pytest.fixture(scope="module")
def chromium(
    browser: str, page_libraries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chromium]:
    driven = Chromium(browser, tmp_path_factory.mktemp("profile"))
    yield driven
    driven.close()
