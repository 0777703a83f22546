"""One Trainer run to its end: resumed where it was, shown while it goes, stopped by signals."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from de3bert.errors import De3Error
from de3bert.files import disk_is_full
from de3bert.training.callbacks import LiveProgress, SaveOnSignal
from de3bert.training.checkpoints import GuardedTrainer
from de3bert.training.diverged import DivergedError
from de3bert.training.output_folder import last_checkpoint

__all__ = ["run_trainer", "written"]

LOG = logging.getLogger(__name__)


def run_trainer(trainer: GuardedTrainer, scratch: Path, label: str, progress: bool) -> float:
    """Trains on from the last checkpoint in `scratch`; the seconds that it took.

    Raises:
        KeyboardInterrupt: a signal stopped it, after a checkpoint.
        De3Error: a checkpoint could not be written.
    """
    shown = LiveProgress("training" if label == "train" else label) if progress else None
    if shown is not None:
        trainer.add_callback(shown)
    checkpoint = last_checkpoint(scratch)
    start = time.perf_counter()
    with SaveOnSignal() as stop:
        trainer.add_callback(stop)
        try:
            with written(scratch):
                trainer.train(
                    resume_from_checkpoint=None if checkpoint is None else str(checkpoint)
                )
        finally:
            if shown is not None:
                shown.stop()
    if stop.caught is not None:
        LOG.info("stopped by a signal at step %d", trainer.state.global_step)
        raise KeyboardInterrupt
    return time.perf_counter() - start


@contextmanager
def written(scratch: Path) -> Iterator[None]:
    """Turns the failure to write a checkpoint into a message."""
    try:
        yield
    except DivergedError:
        raise
    except Exception as error:
        reason = "the disk is full (or a size limit was reached)" if disk_is_full(error) else ""
        if isinstance(error, OSError):
            reason = reason or str(error.strerror or error)
        if not reason:
            raise
        raise De3Error(
            f"A checkpoint could not be written in {scratch}: {reason}. "
            "The checkpoint before it is kept; free some space and run the same command again."
        ) from error
