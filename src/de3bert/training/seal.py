"""Files that can be trusted later: their digests, written last, say that all are there and whole.

What a killed process was still writing has no seal, and what a failing disk has changed does not
match it; neither is ever taken for a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from de3bert.errors import De3Error
from de3bert.files import read_json

__all__ = ["SEAL", "digest", "is_whole", "seal"]

SEAL = "sha256.json"


def seal(folder: Path, names: Iterable[str] | None = None) -> None:
    """Writes the digests of these files of the folder, by default of all; the last thing to do."""
    chosen = sorted(names) if names is not None else _files(folder)
    digests = {name: digest(folder / name) for name in chosen}
    # Written in place: half a seal is none.
    (folder / SEAL).write_text(json.dumps(digests, indent=2), encoding="utf-8")


def is_whole(folder: Path) -> bool:
    """Whether the folder is sealed and every file of it is still what it was then."""
    try:
        digests = read_json(folder / SEAL)
        return bool(digests) and all(
            digest(folder / name) == known for name, known in digests.items()
        )
    except (De3Error, OSError):
        return False


def _files(folder: Path) -> list[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != SEAL)
    return sorted(str(path.relative_to(folder)) for path in found)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    if not path.is_file():  # a pipe would be waited for
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
