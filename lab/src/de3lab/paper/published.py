"""What the paper reports, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["METRICS", "published"]

METRICS = ("f1", "accuracy")  # in the order of the paper's "F1/Acc"


@cache
def published() -> Mapping[str, Any]:
    """Item -> its published numbers."""
    path = resources.files("de3lab") / "paper" / "published.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
