"""A name for the weights of a model folder, so that a trace can say which model made it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from de3bert.runtime.manifest import Manifest, is_bundle

__all__ = ["weights_sha256"]


def weights_sha256(folder: str | Path) -> str | None:
    """SHA-256 of the weights file or of a bundle's graphs; None when it is not a local folder."""
    if is_bundle(folder):
        return Manifest.read(Path(folder)).weights_sha256
    path = Path(folder) / "model.safetensors"
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
