"""Texts to token rows: cut to the model's length, padded only to the longest of a batch."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from de3bert.data.tokens import Encoded, TextInput
from de3bert.errors import De3Error, UsageError
from de3bert.model.pretrained import from_pretrained, reason_of

__all__ = ["TextEncoder", "load_tokenizer"]


class TextEncoder:
    """A tokenizer with the model's length limit. Padding is always on the right."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        marks = tokenizer.num_special_tokens_to_add(pair=False)
        if max_length <= marks:
            raise UsageError(
                f"max_length is {max_length}, and {marks} tokens of every text are special tokens: "
                "nothing of the text would be left. Use a larger one."
            )
        tokenizer.padding_side = "right"
        self.tokenizer = tokenizer
        self.max_length = max_length
        # A tokenizer keeps how it cuts and pads from call to call, and refuses to be told while
        # another thread is using it.
        self.alone = threading.Lock()

    def __call__(self, inputs: Sequence[TextInput]) -> Encoded:
        if not inputs:
            return Encoded([], [])
        pairs = isinstance(inputs[0], tuple)
        first = [text[0] if pairs else text for text in inputs]
        second = [text[1] for text in inputs] if pairs else None
        with self.alone:
            batch = self.tokenizer(
                first, second, truncation=True, max_length=self.max_length, padding=False
            )
        cut = [bool(one.overflowing) for one in batch.encodings or ()]
        names = list(batch.keys())
        rows = [{n: batch[n][i] for n in names} for i in range(len(inputs))]
        return Encoded(rows, cut)

    def pad(self, rows: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
        """Tensors (rows, tokens), padded to the longest row given."""
        longest = max(len(row["input_ids"]) for row in rows)
        filler = {
            "input_ids": self.tokenizer.pad_token_id or 0,
            "token_type_ids": self.tokenizer.pad_token_type_id,
        }
        return {
            name: torch.tensor(
                [row[name] + [filler.get(name, 0)] * (longest - len(row[name])) for row in rows]
            )
            for name in rows[0]
        }


def load_tokenizer(source: str, *, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or hub id."""
    try:
        tokenizer: PreTrainedTokenizerBase = from_pretrained(
            AutoTokenizer, source, trust_remote_code=trust_remote_code
        )
    except De3Error:
        raise
    except Exception as error:  # the tokenizers library raises bare Exceptions
        reason = reason_of(error, source)
        raise De3Error(f"The tokenizer of {source} could not be read: {reason}.") from error
    # A folder without a vocabulary gives a tokenizer that knows nothing, not an error.
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise De3Error(
            f"The tokenizer of {source} has no vocabulary: its files (tokenizer.json, or vocab.txt "
            "and the like) are missing from the model folder."
        )
    if not tokenizer.is_fast:
        raise De3Error(
            f"The tokenizer of {source} has no tokenizer.json (it is a slow one); "
            "convert it once with `AutoTokenizer.from_pretrained(..., use_fast=True)` and save it."
        )
    _check_answer(tokenizer, source)
    return tokenizer


def _check_answer(tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """De3Error when it does not turn a text into what an encoder reads."""
    try:
        names = set(tokenizer("a"))
    except Exception as error:
        reason = reason_of(error, source)
        raise De3Error(f"The tokenizer of {source} cannot read a text: {reason}.") from error
    if missing := sorted({"input_ids", "attention_mask"} - names):
        raise De3Error(
            f"The tokenizer of {source} does not return {missing[0]}, which an encoder reads: see "
            "model_input_names in its tokenizer_config.json."
        )
