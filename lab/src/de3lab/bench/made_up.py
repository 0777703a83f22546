"""Models with random weights and rows of random tokens: good for timing, for nothing else.

What a layer costs does not depend on what it has learnt. Exit layers do, so they are imposed
(`imposed.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from de3bert.data.tokens import TokenRow

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["Shape", "token_rows", "write_random_model"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Shape:
    """The size of a BERT; by default BERT-base with its own pooler at every exit."""

    hidden: int = 768
    intermediate: int = 3072
    heads: int = 12
    layers: int = 12
    vocabulary: int = 30522
    pooling: str = "shared_pooler"
    max_length: int = 128


def write_random_model(shape: Shape, folder: Path, seed: int = 0) -> None:
    """A DE3 model of that shape with its tokenizer, as training would have left them."""
    import torch
    from transformers import BertConfig, BertModel

    from de3bert.model import EarlyExitForSequenceClassification

    config = BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=max(512, shape.max_length),
    )
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = EarlyExitForSequenceClassification.from_backbone(
            BertModel(config),
            num_labels=2,
            method="de3",
            pooling=shape.pooling,
            max_length=shape.max_length,
        )
        assert model.prototypes is not None  # the method has them
        model.prototypes.vectors.normal_()
        model.prototypes.initialised.fill_(True)
    model.save_pretrained(folder)
    _word_tokenizer(shape.vocabulary).save_pretrained(folder)


def _word_tokenizer(size: int) -> PreTrainedTokenizerFast:
    """Words w5, w6 ... up to the size of the vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [*SPECIAL, *(f"w{number}" for number in range(len(SPECIAL), size))]
    numbers = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(word, numbers[word]) for word in ("[CLS]", "[SEP]")],
    )
    names = {f"{word.strip('[]').lower()}_token": word for word in SPECIAL}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, **names)


def token_rows(
    lengths: Sequence[int], vocabulary: int, inputs: Sequence[str], seed: int = 0
) -> list[TokenRow]:
    """Rows of exactly these lengths, with what the model reads of each token."""
    rng = np.random.default_rng(seed)
    rows: list[TokenRow] = []
    for length in lengths:
        drawn = rng.integers(len(SPECIAL), vocabulary, length).tolist()
        made = {
            "input_ids": drawn,
            "attention_mask": [1] * length,
            "token_type_ids": [0] * length,
        }
        rows.append({name: made[name] for name in inputs})
    return rows
