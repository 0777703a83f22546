"""Texts as token rows, whoever made them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Encoded", "TextInput", "TokenRow"]

TextInput = str | tuple[str, str]
TokenRow = dict[str, list[int]]


@dataclass(frozen=True)
class Encoded:
    """Token rows before padding.

    Args:
        rows: one dict per text: `input_ids` and whatever else the model reads.
        truncated: how many texts were longer than the limit and were cut.
    """

    rows: list[TokenRow]
    truncated: int

    @property
    def lengths(self) -> list[int]:
        return [len(row["input_ids"]) for row in self.rows]
