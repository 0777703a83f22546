"""Tiny fine-tuned classifiers as transformers has them, one per family, with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tests.conftest import TINY_WORDS
from tests.model.families import FAMILIES
from transformers import AutoModelForSequenceClassification, PreTrainedModel


def tiny_classifier(family: str, names: Sequence[str] = ("neg", "pos")) -> PreTrainedModel:
    """In evaluation mode; weights are large enough to make every layer count."""
    config = FAMILIES[family]()
    config.vocab_size = len(TINY_WORDS)
    config.id2label = dict(enumerate(names))
    config.label2id = {name: index for index, name in enumerate(names)}
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = AutoModelForSequenceClassification.from_config(config)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.15)
    return model.eval()


def saved(model: PreTrainedModel, tokenizer: object, folder: Path) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]
    return folder
