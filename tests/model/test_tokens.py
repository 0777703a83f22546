"""Texts to token rows."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from de3bert.errors import De3Error, UsageError
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.model.word_encoder import WordEncoder


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


def test_one_thread_at_a_time_has_the_tokenizer(
    tiny_tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses to be told how to cut while another thread is using it."""
    text, words = TextEncoder(tiny_tokenizer, 16), WordEncoder(tiny_tokenizer, 16)
    for encoder, given in ((text, ["good film"]), (words, [["good", "film"]])):
        expected, own, busy, most = encoder(given).rows, encoder.tokenizer, [], []

        def watched(*given: Any, own: Any = own, busy: Any = busy, most: Any = most, **how: Any):
            busy.append(None)
            most.append(len(busy))
            time.sleep(1e-3)
            made = own(*given, **how)
            busy.pop()
            return made

        monkeypatch.setattr(encoder, "tokenizer", watched)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _, e=encoder, g=given: e(g).rows, range(24)))
        assert max(most) == 1
        assert found == [expected] * 24


@pytest.mark.parametrize("length", [2, 1, 0, -1])
def test_a_length_that_leaves_nothing_of_a_text(
    tiny_tokenizer: PreTrainedTokenizerFast, length: int
) -> None:
    with pytest.raises(UsageError, match="nothing of the text would be left"):
        TextEncoder(tiny_tokenizer, length)
    assert TextEncoder(tiny_tokenizer, 3)(["good film"]).lengths == [3]


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(De3Error, match="could not be read"):
        load_tokenizer(str(tmp_path))
