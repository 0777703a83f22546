from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.export.bundles import pointed_model, trained_bundle
from tests.fixtures_trained import model_copy, toy_data, trained_model
from transformers import PreTrainedTokenizerFast

__all__ = [
    "model_copy",
    "pointed_model",
    "toy_data",
    "trained_bundle",
    "trained_model",
    "untrained",
]


@pytest.fixture
def untrained(
    tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> Callable[..., Path]:
    """Makes the folder of a model that never learnt anything: method and options as given."""
    from de3bert.model import EarlyExitForSequenceClassification

    def build(method: str, **more: object) -> Path:
        folder = tmp_path / f"untrained-{method}"
        settings = {"labels": ["neg", "pos"], "max_length": 24, **more}
        model = EarlyExitForSequenceClassification.from_backbone(
            tiny_backbone, method=method, **settings
        )
        model.save_pretrained(folder)
        tiny_tokenizer.save_pretrained(folder)
        return folder

    return build
