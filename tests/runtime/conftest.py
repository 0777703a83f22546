from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures_trained import model_copy, toy_data, trained_model

import de3bert
from de3bert import Classifier

__all__ = ["classifier", "model_copy", "toy_data", "trained_model"]


@pytest.fixture(scope="module")
def classifier(trained_model: Path) -> Classifier:
    return de3bert.load(trained_model)
