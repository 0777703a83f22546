"""Sentences of words to token rows that remember which piece belongs to which word."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import BatchEncoding, PreTrainedTokenizerBase

from de3bert.data.tokens import Encoded, TokenRow
from de3bert.model.tokens import TextEncoder

__all__ = ["NO_LABEL", "WordEncoder"]

NO_LABEL = -100  # where a row of labels is shorter than the longest of its batch


class WordEncoder(TextEncoder):
    """A tokenizer for lists of words. A row's `word_ids` count words from 1; 0 is no word."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        super().__init__(tokenizer, max_length)
        # Words come without the space before them that byte-level tokenizers were trained on.
        before = tokenizer.backend_tokenizer.pre_tokenizer
        if getattr(before, "add_prefix_space", None) is False:
            before.add_prefix_space = True
            tokenizer.backend_tokenizer.pre_tokenizer = before
            tokenizer.add_prefix_space = True  # this is what is saved

    def __call__(self, sentences: Sequence[Sequence[str]]) -> Encoded:
        if not sentences:
            return Encoded([], 0)
        words = [list(sentence) for sentence in sentences]
        batch = self._tokenize(words)
        bare = [self._without_pieces(batch, index, each) for index, each in enumerate(words)]
        if any(bare):  # a word of control characters alone gives no piece: unknown is what it is
            for sentence, missing in zip(words, bare, strict=True):
                for place in missing:
                    sentence[place] = str(self.tokenizer.unk_token or "?")
            batch = self._tokenize(words)
        rows = [self._row(batch, index) for index in range(len(words))]
        cut = sum(bool(one.overflowing) for one in batch.encodings or ())
        return Encoded(rows, cut)

    def _tokenize(self, sentences: list[list[str]]) -> BatchEncoding:
        with self.alone:
            return self.tokenizer(
                sentences,
                is_split_into_words=True,
                truncation=True,
                max_length=self.max_length,
                padding=False,
            )

    def _row(self, batch: BatchEncoding, index: int) -> TokenRow:
        numbers = [0 if number is None else number + 1 for number in batch.word_ids(index)]
        return {**{name: batch[name][index] for name in batch}, "word_ids": numbers}

    @staticmethod
    def _without_pieces(batch: BatchEncoding, index: int, words: list[str]) -> list[int]:
        """Words that the tokenizer left out; those that were cut off at the end are not meant."""
        encoding = (batch.encodings or ())[index]
        seen = {number for part in (encoding, *encoding.overflowing) for number in part.word_ids}
        return [place for place in range(len(words)) if place not in seen]
