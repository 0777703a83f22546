"""Where a training may write, and what of an earlier one lies there."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from de3bert.errors import De3Error, UsageError
from de3bert.files import check_folder_place, read_json
from de3bert.locks import LOCK, PARTIAL, taken_alone
from de3bert.printable import cut_list
from de3bert.training.seal import SEAL, is_whole

__all__ = [
    "check_output",
    "check_scratch",
    "clear",
    "is_finished",
    "last_checkpoint",
    "newest_checkpoint",
    "scratch_folder",
    "taken",
]

LOG = logging.getLogger(__name__)
MARKER = "fingerprint"  # says which recipe and rows the checkpoints beside it belong to
MODEL_TYPE = "de3bert"  # the config's own, without the import of torch that it takes
CHECKPOINT = re.compile(r"checkpoint-(\d{1,15})", re.ASCII)


def is_finished(folder: Path) -> bool:
    """Whether a complete model folder stands there."""
    if not (folder / "model.safetensors").exists():
        return False
    try:
        return read_json(folder / "config.json").get("model_type") == MODEL_TYPE
    except De3Error:
        return False


def check_output(out: Path, overwrite: bool) -> None:
    """Refuses a folder that has something else in it, or that cannot be written."""
    # Not `out.exists()`, which fails on a name that is too long; that is said below.
    empty = not os.path.exists(out) or (out.is_dir() and not any(out.iterdir()))
    if not empty and not is_finished(out):
        raise UsageError(f"{out} exists and is not a model folder. Choose another --out.")
    if not empty and not overwrite:
        raise UsageError(f"{out} holds a model already. Choose another --out, or pass --overwrite.")
    check_folder_place(out)


def scratch_folder(out: Path) -> Path:
    """Where checkpoints live until the model folder is complete."""
    return out.absolute().with_name(out.absolute().name + ".training")


@contextmanager
def taken(scratch: Path) -> Iterator[None]:
    """The scratch folder is this training's until the end; what holds nothing then is removed."""
    check_folder_place(scratch)
    missing = [folder for folder in (scratch, *scratch.parents) if not folder.exists()]
    busy = (
        f"Another training is writing into {scratch}. Wait for it to finish, or choose another "
        "--out."
    )
    try:
        with taken_alone(scratch, busy):
            if _is_foreign(scratch):
                raise UsageError(
                    f"{scratch} is where checkpoints would be kept, and it holds other files. "
                    "Choose another --out, or move them away."
                )
            try:
                yield
            finally:
                if _names(scratch) <= {LOCK}:
                    shutil.rmtree(scratch, ignore_errors=True)
    finally:
        for folder in missing:  # made for nothing, from the innermost out
            if folder.is_dir() and not _names(folder):
                folder.rmdir()


def clear(scratch: Path) -> None:
    """Removes everything but the lock, which has to stay where others look for it."""
    for item in scratch.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item, ignore_errors=True)
        elif item.name != LOCK:
            item.unlink(missing_ok=True)


def check_scratch(scratch: Path, fingerprint: str) -> None:
    """Refuses to go on from checkpoints of another recipe or of other rows."""
    marker = scratch / MARKER
    same = marker.exists() and marker.read_bytes() == fingerprint.encode()
    if not same and any(scratch.rglob("trainer_state.json")):
        raise UsageError(
            f"There is an unfinished training with another recipe or other rows in {scratch}.\n"
            "Pass --fresh to discard it, or choose another --out."
        )


def last_checkpoint(scratch: Path) -> Path | None:
    """The newest checkpoint that is whole, with the best one that it refers to.

    Newer ones are removed, with a warning: they are half-written or damaged.
    """
    whole, spoilt = {}, []
    for step, folder in sorted(_checkpoints(scratch).items()):
        best = _best_step(folder) if is_whole(folder) else None
        if best is not None and (best in (0, step) or best in whole):
            whole[step] = folder
        else:
            spoilt.append(folder)
    last = whole[max(whole)] if whole else None
    if spoilt:
        LOG.warning(
            "Incomplete in %s, as after a kill or a disk error: %s; the training resumes from %s.",
            scratch,
            cut_list(folder.name for folder in spoilt),
            "the beginning" if last is None else last.name,
        )
    for folder in spoilt:
        shutil.rmtree(folder, ignore_errors=True)
    return last


def newest_checkpoint(scratch: Path) -> Path | None:
    """The newest that was written to the end."""
    sealed = {step: path for step, path in _checkpoints(scratch).items() if (path / SEAL).exists()}
    return sealed[max(sealed)] if sealed else None


def _checkpoints(scratch: Path) -> dict[int, Path]:
    """Step -> checkpoint, whole or not."""
    found = ((CHECKPOINT.fullmatch(path.name), path) for path in scratch.glob("checkpoint-*"))
    return {int(match[1]): path for match, path in found if match is not None}


def _best_step(checkpoint: Path) -> int | None:
    """The step of the best checkpoint up to this one, 0 for none; None where it cannot be read."""
    try:
        step = read_json(checkpoint / "trainer_state.json").get("best_global_step")
    except De3Error:
        return None
    return step if isinstance(step, int) else 0


def _is_foreign(scratch: Path) -> bool:
    """Whether it holds something and no training has marked it as its own."""
    held = {name for name in _names(scratch) - {LOCK} if PARTIAL not in name}
    return bool(held) and not (scratch / MARKER).is_file()


def _names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()} if folder.is_dir() else set()
