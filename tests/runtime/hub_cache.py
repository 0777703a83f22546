"""The hub's cache on this machine, as `huggingface_hub` lays it out, filled without a network."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

__all__ = ["keep_in_cache"]


def keep_in_cache(
    cache: Path, name: str, folder: Path, commit: str = "a" * 40, revision: str = "main"
) -> Path:
    """Files a folder as the model `name` at a revision: links in a snapshot, contents in blobs."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot, blobs, refs = (repository / part for part in (f"snapshots/{commit}", "blobs", "refs"))
    for made in (snapshot, blobs, (refs / revision).parent):
        made.mkdir(parents=True, exist_ok=True)
    (refs / revision).write_text(commit)
    for file in folder.iterdir():
        blob = blobs / hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copyfile(file, blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot
