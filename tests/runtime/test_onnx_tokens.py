"""The tokenizer of a bundle: the rows that the model library makes, none of them padded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.test_stopping import PROPERTY
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from de3bert.errors import De3Error
from de3bert.export.write import write_tokenizer
from de3bert.model.tokens import TextEncoder
from de3bert.runtime.tokens import BundleEncoder

CORPUS = [
    "the best film was a joy but the plot is dull and the actors never start to act",
    "Ça dépend du scénario: naïve, drôle, très bien fait; ÜBER alles gut gemacht!",
    "你好 世界 今天的电影很好看 猫", "これは映画です とても良い", "السلام عليكم هذا فيلم جيد",
    "שלום עולם זה סרט טוב", "🙂🙃 👩‍👩‍👧 🏳️‍🌈 👍🏽", "Привет, мир! Фильм хороший.",
    "0123456789 +-*/= () [] {} <>",
]  # fmt: skip
TEXTS = [
    *CORPUS,
    "a",
    " leading and trailing \t\n",
    "tabs\tand\nnewlines\r\nand\u00a0spaces\u2003of\u3000all kinds",
    "control \x00\x01\x02\x1b[0m\x7f\x85 characters",
    "zero\u200bwidth\u200d \ufeffmark \u202eright to left\u202c",
    "e\u0301 decomposed, é composed, ﬁ ligature, Ⅷ, ½, \uff21\uff22\uff23 full width, İstanbul ß ẞ",
    "[CLS] [SEP] [PAD] [MASK] <s> </s> <pad> <mask> inside",
    "🙂" * 40,
    "猫" * 60,
    "x" * 300,
    "word " * 300,
    "\U0010ffff \ue000 \ufffd \U0001d4b3 𐍈",
    "don't can't won't it's I'm we're they've",
    "...!!!???---",
]
VERY_LONG = ["word " * 20_000, "猫🙂" * 10_000, "x" * 50_000]
LIMITS = (8, 24, 128)


def word_pieces() -> PreTrainedTokenizerFast:
    """As BERT has it."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(names, special, strict=True)),
    )


def byte_pairs() -> PreTrainedTokenizerFast:
    """As RoBERTa has it: bytes, no segment ids, two separators, padding that is not 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet),
    )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def unigrams() -> PreTrainedTokenizerFast:
    """As XLM-RoBERTa and ALBERT have it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>"),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


KINDS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "word pieces": word_pieces,
    "byte pairs": byte_pairs,
    "unigrams": unigrams,
}


@pytest.fixture(scope="module", params=KINDS)
def saved(request, tmp_path_factory) -> Path:
    """A tokenizer of one kind as a model folder has it."""
    folder = tmp_path_factory.mktemp("tokenizer")
    KINDS[request.param]().save_pretrained(folder)
    return folder


def both(folder: Path, limit: int, bundle: Path) -> tuple[TextEncoder, BundleEncoder]:
    """What the model uses, and what its bundle uses."""
    theirs = TextEncoder(AutoTokenizer.from_pretrained(folder), limit)
    padding = write_tokenizer(theirs, bundle)
    inputs = list(theirs(["a"]).rows[0])
    return theirs, BundleEncoder.read(bundle / "tokenizer.json", limit, inputs, padding)


@pytest.mark.parametrize("limit", LIMITS)
def test_rows_are_those_of_the_model_library(saved, tmp_path, limit):
    theirs, ours = both(saved, limit, tmp_path)
    pairs = [*zip(TEXTS, reversed(TEXTS), strict=True), ("a", "a")]
    for texts in (TEXTS + VERY_LONG, pairs):
        expected = theirs(texts)
        together = ours(texts)
        assert together == expected
        assert 0 < expected.truncated < len(texts)
        assert max(expected.lengths) == limit
        assert [ours([text]).rows[0] for text in texts] == expected.rows
        assert sum(ours([text]).truncated for text in texts) == expected.truncated
        arrays, tensors = ours.pad(together.rows), theirs.pad(expected.rows)
        assert arrays.keys() == tensors.keys()
        for name, array in arrays.items():
            assert array.tolist() == tensors[name].tolist()


def test_rows_of_any_text_are_those_of_the_model_library(saved, tmp_path):
    theirs, ours = both(saved, 12, tmp_path)
    text = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)

    @settings(PROPERTY, max_examples=150)
    @given(texts=st.one_of(st.lists(text, max_size=4), st.lists(st.tuples(text, text), max_size=4)))
    def check(texts):
        assert ours(texts) == theirs(texts)

    check()


def test_of_a_pair_the_longer_text_is_cut_first(saved, tmp_path):
    theirs, ours = both(saved, 16, tmp_path)
    long, short = "the best film was a joy " * 9, "a film"
    for pair in ((long, short), (short, long), (long, long)):
        (row,) = ours([pair]).rows
        assert len(row["input_ids"]) == 16
        assert row == theirs([pair]).rows[0]
    (row,) = ours([(long, short)]).rows
    whole = ours([short]).rows[0]["input_ids"][1:-1]
    assert row["input_ids"][-len(whole) - 1 : -1] == whole


@pytest.mark.parametrize("side", ["left", "right"])
def test_texts_are_cut_on_the_side_the_model_cuts(saved, tmp_path, side):
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"truncation_side": side}))
    theirs, ours = both(folder, 8, tmp_path)
    assert theirs.tokenizer.truncation_side == side
    assert ours(TEXTS) == theirs(TEXTS)


@pytest.mark.parametrize("strategy", ["longest_first", "only_first"])
def test_padding_and_cutting_that_a_file_asks_for_is_switched_off(saved, tmp_path, strategy):
    theirs, _ = both(saved, 200, tmp_path)
    path = tmp_path / "tokenizer.json"
    fixed = Tokenizer.from_file(str(path))
    fixed.enable_padding(length=128, pad_id=1, pad_token="<pad>", direction="left")
    fixed.enable_truncation(128, strategy=strategy)
    fixed.save(str(path))
    asked = json.loads(path.read_text(encoding="utf-8"))
    assert asked["padding"]["strategy"] == {"Fixed": 128}
    assert asked["truncation"]["max_length"] == 128
    inputs = list(theirs(["a"]).rows[0])
    ours = BundleEncoder.read(path, 200, inputs, {"input_ids": 0})
    short = ours(["a film", "the plot"])
    assert short == theirs(["a film", "the plot"])
    assert max(short.lengths) < 20
    assert ours(["a film"]).rows == short.rows[:1]
    long = [("word " * 300, "a film"), ("a film", "word " * 300)]
    assert ours(long) == theirs(long)
    assert ours(long).lengths == [200, 200]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "1.0"}'])
def test_a_file_that_is_no_tokenizer(tmp_path, text):
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    with pytest.raises(De3Error, match=r"tokenizer\.json could not be read"):
        BundleEncoder.read(path, 8, ["input_ids"], {})
    with pytest.raises(De3Error, match="could not be read"):
        BundleEncoder.read(tmp_path / "nowhere.json", 8, ["input_ids"], {})
