"""Training a model folder from a recipe."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from transformers import (
    Trainer,
    set_seed,
)

from de3bert.card import write_card
from de3bert.errors import De3Error, UsageError
from de3bert.exits.metrics import METRICS
from de3bert.files import disk_is_full, replace_folder, write_json, write_text
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.training.callbacks import LiveProgress, SaveOnSignal
from de3bert.training.place import (
    MARKER,
    check_place,
    check_scratch,
    is_finished,
    last_checkpoint,
    scratch_folder,
)
from de3bert.training.recipe import Recipe, recipe_text
from de3bert.training.refresh import refresh_prototypes
from de3bert.training.rows import Rows, Splits, read_splits
from de3bert.training.trainer import build_trainer

__all__ = ["Trained", "fit", "is_finished"]

LOG = logging.getLogger(__name__)
MERGED = 1e-6  # cosine distance; vectors share a large common part, so sound ones lie near too


@dataclass(frozen=True)
class Trained:
    """What a training gave.

    Args:
        folder: the model folder.
        exit_accuracy: layer -> accuracy on calibration rows, of the best checkpoint.
        seconds: wall time of the training loop, 0 when the finished model was there already.
        notes: what the user should know: cut texts, exits at chance, merging prototypes.
    """

    folder: Path
    exit_accuracy: dict[int, float]
    seconds: float
    steps: int
    notes: list[str]

    @property
    def score(self) -> float:
        """Mean accuracy over exits, by which checkpoints and searches choose."""
        return sum(self.exit_accuracy.values()) / len(self.exit_accuracy)

    def to_json(self) -> dict[str, Any]:
        accuracy = {str(layer): value for layer, value in self.exit_accuracy.items()}
        return {**vars(self), "folder": str(self.folder), "exit_accuracy": accuracy}


def fit(
    recipe: Recipe,
    out: str | Path,
    *,
    overwrite: bool = False,
    fresh: bool = False,
    progress: bool = True,
    splits: Splits | None = None,
) -> Trained:
    """Trains by the recipe and writes a model folder; an interrupted training goes on where it was.

    Checkpoints live in `OUT.training` until the model folder is complete. `fresh` discards them.
    """
    out = Path(out)
    METRICS[recipe.data.metric]  # an unknown one is refused before the work, not after
    check_place(out, overwrite)
    scratch = scratch_folder(out)
    if fresh:
        shutil.rmtree(scratch, ignore_errors=True)
    set_seed(recipe.train.seed)
    splits = splits or read_splits(recipe.data, recipe.train.seed)
    fingerprint = f"{recipe.fingerprint()} {splits.fingerprint()}"
    check_scratch(scratch, fingerprint)
    model = EarlyExitForSequenceClassification.from_backbone(
        recipe.backbone,
        labels=splits.labels.names,
        method=recipe.method,
        pooling=recipe.pooling,
        prototypes=recipe.prototypes,
        exit_layers=recipe.exit_layers,
        max_length=recipe.data.max_length,
        **recipe.method_options,  # type: ignore[arg-type]  # their names are checked there
    )
    if recipe.train.refresh_prototypes and model.prototypes is None:
        raise UsageError("refresh_prototypes is set, but this model has no prototypes to refresh.")
    model.config.metric = recipe.data.metric
    encoder = TextEncoder(load_tokenizer(recipe.backbone), model.config.max_length)
    train = encoder(splits.train.inputs())
    calibration = encoder(splits.calibration.inputs())
    rows = Rows(train, splits.train_labels)
    held = Rows(calibration, splits.calibration_labels)
    trainer = build_trainer(model, recipe.train, scratch, rows, held, encoder)
    # Only now, when nothing can be wrong with the request any more, is something written.
    write_text(scratch / MARKER, fingerprint)
    seconds = _run(trainer, scratch, progress)
    if recipe.train.refresh_prototypes:
        refresh_prototypes(model, rows, encoder)
    accuracy = _exit_accuracy(trainer, model)
    notes = _notes(model, accuracy, splits, train.truncated, len(train.rows))
    record = {
        "schema": 1,
        "backbone": "/".join(Path(recipe.backbone).parts[-2:]),  # no path of this machine
        "seconds": seconds,
        "steps": trainer.state.global_step,
        "rows": {"train": len(rows), "calibration": len(held)},
        "data": {"train": splits.train.sha256, "calibration": splits.calibration.sha256},
        "exit_accuracy": accuracy,
        "prototype_separation": _separation(model),
        "notes": notes,
        "log": trainer.state.log_history,
    }
    _save(out, model, encoder, recipe, record)
    shutil.rmtree(scratch, ignore_errors=True)
    return Trained(out, accuracy, seconds, trainer.state.global_step, notes)


def _save(
    out: Path,
    model: EarlyExitForSequenceClassification,
    encoder: TextEncoder,
    recipe: Recipe,
    record: dict[str, Any],
) -> None:
    """The whole model folder, or nothing."""
    with replace_folder(out) as folder:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        write_text(folder / "recipe.toml", recipe_text(recipe))
        write_json(folder / "training.json", record)
        write_card(folder, out.absolute().name)


def _run(trainer: Trainer, scratch: Path, progress: bool) -> float:
    if progress:
        trainer.add_callback(LiveProgress("training"))
    checkpoint = last_checkpoint(scratch)
    start = time.perf_counter()
    with SaveOnSignal() as stop:
        trainer.add_callback(stop)
        try:
            trainer.train(resume_from_checkpoint=checkpoint)
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
    if stop.caught is not None:
        LOG.info("stopped by a signal at step %d", trainer.state.global_step)
        raise KeyboardInterrupt
    return time.perf_counter() - start


def _exit_accuracy(trainer: Trainer, model: EarlyExitForSequenceClassification) -> dict[int, float]:
    metrics = trainer.evaluate()
    return {m: metrics[f"eval_accuracy_layer_{m}"] for m in model.config.exit_layers}


def _notes(
    model: EarlyExitForSequenceClassification,
    accuracy: dict[int, float],
    splits: Splits,
    truncated: int,
    rows: int,
) -> list[str]:
    notes = []
    if truncated:
        notes.append(
            f"{truncated} of {rows} training texts were cut to {model.config.max_length} tokens"
        )
    labels = splits.calibration_labels
    majority = np.bincount(labels).max() / len(labels)
    at_chance = [m for m, value in accuracy.items() if value <= majority + 0.02]
    if at_chance:
        listed = ", ".join(map(str, at_chance))
        notes.append(
            f"the exits at layers {listed} are no better than always answering the commonest "
            f'class; they read "{model.config.pooling}", try another pooling (mean, shared_pooler) '
            "or more epochs"
        )
    merged = [layer for layer, distance in _separation(model).items() if distance < MERGED]
    if merged:
        notes.append(f"prototypes of different classes have merged at layers {merged}")
    return notes


def _separation(model: EarlyExitForSequenceClassification) -> dict[int, float]:
    """Layer -> the smallest distance between the prototypes of two classes."""
    if model.prototypes is None:
        return {}
    nearest = model.prototypes.separation().tolist()
    return dict(zip(model.config.exit_layers or [], nearest, strict=False))
