"""Where a training may write, and what of an earlier one lies there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from de3bert.errors import UsageError
from de3bert.model import EarlyExitConfig

__all__ = ["check_place", "check_scratch", "is_finished", "last_checkpoint", "scratch_folder"]

MARKER = "fingerprint"  # says which recipe and rows the checkpoints beside it belong to


def is_finished(folder: Path) -> bool:
    """Whether a complete model folder stands there."""
    if not (folder / "model.safetensors").exists():
        return False
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == EarlyExitConfig.model_type


def check_place(out: Path, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_finished(out):
        raise UsageError(f"{out} exists and is not a model folder. Choose another --out.")
    if not overwrite:
        raise UsageError(f"{out} holds a model already. Choose another --out, or pass --overwrite.")


def scratch_folder(out: Path) -> Path:
    """Where checkpoints live until the model folder is complete."""
    return out.absolute().with_name(out.absolute().name + ".training")


def check_scratch(scratch: Path, fingerprint: str) -> None:
    """Refuses to go on from checkpoints of another recipe or of other rows."""
    marker = scratch / MARKER
    same = marker.exists() and marker.read_text(encoding="utf-8") == fingerprint
    if not same and any(scratch.rglob("trainer_state.json")):
        raise UsageError(
            f"An unfinished training with another recipe or other rows lies in {scratch}.\n"
            "Pass --fresh to discard it, or choose another --out."
        )


def last_checkpoint(scratch: Path) -> str | None:
    """The newest complete checkpoint; half-written ones are removed."""
    complete: list[tuple[int, Path]] = []
    for folder in scratch.glob("checkpoint-*"):
        if _is_complete(folder):
            complete.append((int(folder.name.split("-")[1]), folder))
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return str(max(complete)[1]) if complete else None


def _is_complete(checkpoint: Path) -> bool:
    # The Trainer writes its state last, so a whole file of that name marks a whole checkpoint.
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
