"""Sentences (lists of words) to token rows that remember which piece belongs to which word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizerBase

from de3bert.data.tokens import Encoded, known_words, word_row
from de3bert.model.tokens import TextEncoder
from de3bert.tasks import TASKS

__all__ = ["NO_LABEL", "WordEncoder", "encoder_of"]

NO_LABEL = -100  # where a row of labels is shorter than the longest of its batch


class WordEncoder(TextEncoder):
    """A tokenizer for lists of words. A row's `word_ids` count words from 1; 0 is no word."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        super().__init__(tokenizer, max_length)
        tokenizer.truncation_side = "right"  # words behind the limit are those without an answer
        self.unknown = str(tokenizer.unk_token or "?")  # stands for a word that gives no piece
        # Words come without the space before them that byte-level tokenizers were trained on.
        before = tokenizer.backend_tokenizer.pre_tokenizer
        if getattr(before, "add_prefix_space", None) is False:
            before.add_prefix_space = True
            tokenizer.backend_tokenizer.pre_tokenizer = before
            tokenizer.add_prefix_space = True  # this is what is saved

    def __call__(self, sentences: Sequence[Any]) -> Encoded:
        if not sentences:
            return Encoded([], [])
        words = [list(sentence) for sentence in sentences]
        batch = self._tokenize(words)
        mended = known_words(words, batch.encodings or (), self.unknown)
        if mended is not None:
            batch = self._tokenize(mended)
        rows = [
            {**{name: batch[name][index] for name in batch}, "word_ids": word_row(encoding)}
            for index, encoding in enumerate(batch.encodings or ())
        ]
        return Encoded(rows, [bool(one.overflowing) for one in batch.encodings or ()])

    def _tokenize(self, sentences: list[list[str]]) -> BatchEncoding:
        with self.alone:
            return self.tokenizer(
                sentences,
                is_split_into_words=True,
                truncation=True,
                max_length=self.max_length,
                padding=False,
            )


def encoder_of(task: str, tokenizer: PreTrainedTokenizerBase, max_length: int) -> TextEncoder:
    """What makes token rows of a task's inputs."""
    kind = WordEncoder if TASKS[task].splits_words else TextEncoder
    return kind(tokenizer, max_length)
