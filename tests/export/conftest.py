from __future__ import annotations

from pathlib import Path

import pytest
from tests.export.bundles import (
    bundle_copy,
    int8_bundle,
    pointed_model,
    ready_graphs,
    trained_bundle,
)
from tests.fixtures_trained import model_copy, toy_data, trained_model

import de3bert
from de3bert import Classifier

__all__ = [
    "bundle_copy",
    "classifier",
    "int8_bundle",
    "model_copy",
    "pointed_model",
    "ready_graphs",
    "toy_data",
    "trained_bundle",
    "trained_model",
]


@pytest.fixture(scope="module")
def classifier(pointed_model: Path) -> Classifier:
    """The model that the bundles were made of, run by torch."""
    return de3bert.load(pointed_model)
