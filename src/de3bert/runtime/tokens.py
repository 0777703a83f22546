"""Texts to token rows by the Rust tokenizer alone: what a bundle uses, with no model library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from de3bert.data.tokens import Encoded, TextInput, TokenRow, known_words, word_row
from de3bert.errors import De3Error

__all__ = ["BundleEncoder"]

FIELDS = {"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}


class BundleEncoder:
    """A tokenizer with the model's length limit.

    Files from the hub often ask for a fixed padding to 128 tokens, which would make a text of five
    words as costly as a long one: any padding and truncation that a file asks for is switched off.

    Args:
        unknown: where rows are sentences of words, what stands for a word that gives no token; None
            where rows are texts.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int,
        inputs: Sequence[str],
        padding: dict[str, int],
        unknown: str | None = None,
    ) -> None:
        marks = tokenizer.num_special_tokens_to_add(False)
        if max_length <= marks:
            raise De3Error(
                f"The bundle's config is damaged: max_length is {max_length}, and {marks} tokens "
                "of every text are special tokens."
            )
        # At which end a text is cut belongs to the model: the exporter writes it into the file.
        side = (tokenizer.truncation or {}).get("direction", "right")
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length, strategy="longest_first", direction=side)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.inputs = tuple(inputs)
        self.padding = padding
        self.unknown = unknown

    @classmethod
    def read(
        cls,
        path: Path,
        max_length: int,
        inputs: Sequence[str],
        padding: dict[str, int],
        unknown: str | None = None,
    ) -> BundleEncoder:
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the tokenizers library raises bare Exceptions
            raise De3Error(f"The tokenizer {path} could not be read: {error}") from error
        return cls(tokenizer, max_length, inputs, padding, unknown)

    def __call__(self, texts: Sequence[TextInput] | Sequence[list[str]]) -> Encoded:
        if self.unknown is not None:
            made = self.tokenizer.encode_batch(list(texts), is_pretokenized=True)
            if (mended := known_words(texts, made, self.unknown)) is not None:
                made = self.tokenizer.encode_batch(mended, is_pretokenized=True)
        elif len(texts) == 1:  # no thread pool for one text
            text = texts[0]
            pair = text if isinstance(text, tuple) else (text, None)
            made = [self.tokenizer.encode(*pair)]
        else:
            made = self.tokenizer.encode_batch(list(texts))
        return Encoded([self._row(one) for one in made], [bool(one.overflowing) for one in made])

    def _row(self, one: Any) -> TokenRow:
        row = {name: getattr(one, FIELDS[name]) for name in self.inputs}
        return row if self.unknown is None else {**row, "word_ids": word_row(one)}

    def pad(self, rows: Sequence[TokenRow]) -> dict[str, NDArray[np.int64]]:
        """Arrays (rows, tokens), padded on the right to the longest row given."""
        longest = max(len(row["input_ids"]) for row in rows)
        return {
            name: np.array(
                [row[name] + [self.padding.get(name, 0)] * (longest - len(row[name]))
                 for row in rows],
                dtype=np.int64,
            )
            for name in rows[0]
        }  # fmt: skip
