"""A tiny masked language model, a fine-tuned teacher, and what a training hook is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TINY_WORDS
from tests.fixtures_trained import once, toy_recipe, toy_rows

LAYERS = 4


@pytest.fixture(scope="session")
def masked_backbone(tmp_path_factory, tiny_tokenizer) -> Path:
    """A random BERT of 4 layers, 32 wide, with a head that guesses hidden words."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("masked") / "tiny-masked"
    config = BertConfig(
        vocab_size=len(TINY_WORDS),
        hidden_size=32,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = BertForMaskedLM(config)
        for parameter in model.cls.parameters():  # a head that is worth learning from
            if parameter.dim() > 1 and parameter is not model.get_input_embeddings().weight:
                torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def teacher(tmp_path_factory, tiny_backbone, toy_data) -> Path:
    """A model of method `full` that learnt the toy task."""
    from de3bert.training.fit import fit
    from de3bert.training.recipe import recipe_from

    recipe = recipe_from(toy_recipe(tiny_backbone, toy_data), ["method=full"])
    return once(tmp_path_factory, "teacher", lambda out: fit(recipe, out, progress=False))


@pytest.fixture
def context(tiny_backbone, tiny_tokenizer) -> Callable[..., Any]:
    """Makes what a hook is given: a fresh model of a method and 24 toy rows."""
    import numpy as np
    import torch

    from de3bert.model import EarlyExitForSequenceClassification
    from de3bert.model.tokens import TextEncoder
    from de3bert.training.hook import PhaseContext
    from de3bert.training.rows import Rows

    def make(method: str, teacher: Path | None = None, backbone: Path = tiny_backbone, **options):
        torch.manual_seed(0)
        model = EarlyExitForSequenceClassification.from_backbone(
            str(backbone), labels=["neg", "pos"], method=method, pooling="mean", **options
        )
        encoder = TextEncoder(tiny_tokenizer, 24)
        made = toy_rows(24, 9)
        labels = np.array([int(label == "pos") for _, label in made])
        rows = Rows(encoder([text for text, _ in made]), labels)
        resolved = dict(model.config.method_options)
        return PhaseContext(model, rows, rows, encoder, resolved, str(backbone), teacher, 3)

    return make
