"""The laboratory's tests use the product's tiny models and toy rows."""

from __future__ import annotations

from tests.conftest import browser, tiny_backbone, tiny_tokenizer

__all__ = ["browser", "tiny_backbone", "tiny_tokenizer"]
