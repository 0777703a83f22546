from __future__ import annotations

from tests.cli.conftest import de3, model_copy, toy_data, trained_model

__all__ = ["de3", "model_copy", "toy_data", "trained_model"]
