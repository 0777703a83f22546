"""A name for the weights of a model folder, so that a trace can say which model made it."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["weights_sha256"]


def weights_sha256(folder: str | Path) -> str | None:
    """SHA-256 of the weights file; None for a model that is not a local folder."""
    path = Path(folder) / "model.safetensors"
    if not path.exists():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
