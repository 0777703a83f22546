"""The product's bundles and texts for timing."""

from __future__ import annotations

from tests.bench.conftest import bundle, material, texts, toy_data, trained_model

__all__ = ["bundle", "material", "texts", "toy_data", "trained_model"]
