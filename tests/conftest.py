"""Tiny fixtures shared by all tests: nothing is downloaded."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.fixtures_tagged import de3_tagger, sentee_model, tokee_model, word_data

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["browser", "de3_tagger", "sentee_model", "tokee_model", "word_data"]

# Tiny tensors on busy cores: threads cost more than they give. Must be set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A test process holds torch, transformers and, more and more of them, traced programs: millions of
# objects that are never garbage. Every training and every export asks for a full collection, which
# would walk them all, two seconds at the end of a run. What is alive between two files is left out.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    _keep_out()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is not None and nextitem.path != item.path:
        _keep_out()


def _keep_out() -> None:
    gc.collect()
    gc.freeze()


WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] good bad great awful fine dull joy bore loved hated best worst "
    "film movie story actor plot scene start finish the a an was is not no and but very so it this "
    "that with of to in i you we they from one two never always"
)
TINY_WORDS = WORDS.split()


@pytest.fixture(scope="session")
def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """BERT's tokenizer with `TINY_WORDS` for a vocabulary: other words are unknown."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate(TINY_WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@pytest.fixture(scope="session")
def tiny_backbone(
    tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: PreTrainedTokenizerFast
) -> Path:
    """A random BERT of 4 layers, 32 wide, with its tokenizer, as an ordinary model folder."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("backbone") / "tiny-bert"
    config = BertConfig(
        vocab_size=len(TINY_WORDS),
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertModel(config).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def small_backbone(
    tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: PreTrainedTokenizerFast
) -> Path:
    """A random BERT of 2 layers, 16 wide, that reads the same tokens: half a layer's work each."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("small") / "small-bert"
    config = BertConfig(
        vocab_size=len(TINY_WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(8)
        BertModel(config).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def browser() -> str:
    """A real browser; pages are not driven where there is none (CI installs one)."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium here")
    return found
