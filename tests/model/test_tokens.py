"""Texts to token rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from de3bert.errors import De3Error
from de3bert.model.tokens import TextEncoder, load_tokenizer


def test_long_texts_are_cut_and_counted(tiny_backbone: Path) -> None:
    encoder = TextEncoder(load_tokenizer(str(tiny_backbone)), max_length=5)
    encoded = encoder(["good film", "a very very very good film", "not bad at"])
    assert encoded.lengths == [4, 5, 5]
    assert encoded.truncated == 1
    cls, sep = encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id
    assert all(row["input_ids"][0] == cls for row in encoded.rows)
    assert all(row["input_ids"][-1] == sep for row in encoded.rows)
    assert encoder([]).rows == []


def test_pairs_carry_segment_ids(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = TextEncoder(tiny_tokenizer, 16)([("good film", "the plot was dull")])
    assert encoded.rows[0]["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_padding_reaches_to_the_longest_row_and_no_further(
    tiny_tokenizer: PreTrainedTokenizerFast,
) -> None:
    encoder = TextEncoder(tiny_tokenizer, 16)
    padded = encoder.pad(encoder(["good", "a very good film"]).rows)
    assert {tensor.shape for tensor in padded.values()} == {(2, 6)}
    assert padded["attention_mask"].tolist() == [[1, 1, 1, 0, 0, 0], [1] * 6]
    assert padded["input_ids"][0, 3:].tolist() == [tiny_tokenizer.pad_token_id] * 3


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(De3Error, match="could not be read"):
        load_tokenizer(str(tmp_path))
