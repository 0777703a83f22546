"""The laboratory's tests use the product's tiny models and toy rows."""

from __future__ import annotations

from tests.conftest import browser, small_backbone, tiny_backbone, tiny_tokenizer

__all__ = ["browser", "small_backbone", "tiny_backbone", "tiny_tokenizer"]
