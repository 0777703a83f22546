"""Training a model folder from a recipe."""

from __future__ import annotations

import functools
import json
import logging
import math
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    EarlyStoppingCallback,
    EvalPrediction,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from de3bert.card import write_card
from de3bert.errors import De3Error, UsageError
from de3bert.exits.metrics import METRICS
from de3bert.files import disk_is_full, replace_folder, write_json, write_text
from de3bert.model import EarlyExitConfig, EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.training.callbacks import LiveProgress, SaveOnSignal
from de3bert.training.order import OrderedTrainer
from de3bert.training.recipe import Recipe, recipe_text
from de3bert.training.rows import Rows, Splits, collate, read_splits

__all__ = ["Trained", "fit", "is_finished"]

LOG = logging.getLogger(__name__)
BEST = "mean_exit_accuracy"


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


def is_finished(folder: Path) -> bool:
    """Whether a complete model folder stands there."""
    if not (folder / "model.safetensors").exists():
        return False
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == EarlyExitConfig.model_type


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
    scratch = _scratch_folder(out, recipe, overwrite=overwrite, fresh=fresh)
    set_seed(recipe.train.seed)
    splits = splits or read_splits(recipe.data, recipe.train.seed)
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
    model.config.metric = recipe.data.metric
    encoder = TextEncoder(load_tokenizer(recipe.backbone), model.config.max_length)
    train = encoder(splits.train.inputs())
    calibration = encoder(splits.calibration.inputs())
    trainer = _trainer(
        model,
        recipe,
        scratch,
        Rows(train, splits.train_labels),
        Rows(calibration, splits.calibration_labels),
        encoder,
    )
    # Only now, when nothing can be wrong with the request any more, is something written.
    write_text(scratch / "fingerprint", recipe.fingerprint())
    seconds = _run(trainer, scratch, progress)
    accuracy = _exit_accuracy(trainer, model)
    notes = _notes(model, accuracy, splits, train.truncated, len(train.rows))
    with replace_folder(out) as folder:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        write_text(folder / "recipe.toml", recipe_text(recipe))
        record = {
            "schema": 1,
            "backbone": Path(recipe.backbone).name,
            "seconds": seconds,
            "steps": trainer.state.global_step,
            "rows": {"train": len(train.rows), "calibration": len(calibration.rows)},
            "data": {"train": splits.train.sha256, "calibration": splits.calibration.sha256},
            "exit_accuracy": accuracy,
            "notes": notes,
            "log": trainer.state.log_history,
        }
        write_json(folder / "training.json", record)
        write_card(folder, out.absolute().name)
    shutil.rmtree(scratch, ignore_errors=True)
    return Trained(out, accuracy, seconds, trainer.state.global_step, notes)


def _scratch_folder(out: Path, recipe: Recipe, *, overwrite: bool, fresh: bool) -> Path:
    scratch = out.absolute().with_name(out.absolute().name + ".training")
    _check_place(out, overwrite)
    if fresh:
        shutil.rmtree(scratch, ignore_errors=True)
    marker = scratch / "fingerprint"
    same = marker.exists() and marker.read_text(encoding="utf-8") == recipe.fingerprint()
    if not same and _last_checkpoint(scratch) is not None:
        raise UsageError(
            f"An unfinished training with another recipe lies in {scratch}.\n"
            "Pass --fresh to discard it, or choose another --out."
        )
    return scratch


def _check_place(out: Path, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_finished(out):
        raise UsageError(f"{out} exists and is not a model folder. Choose another --out.")
    if not overwrite:
        raise UsageError(f"{out} holds a model already. Choose another --out, or pass --overwrite.")


def _trainer(
    model: EarlyExitForSequenceClassification,
    recipe: Recipe,
    scratch: Path,
    train: Rows,
    calibration: Rows,
    encoder: TextEncoder,
) -> Trainer:
    settings = recipe.train
    steps_per_epoch = math.ceil(len(train) / settings.batch_size)
    half, brain = _precision(settings.mixed_precision)
    arguments = TrainingArguments(
        output_dir=str(scratch),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=max(64, settings.batch_size),
        gradient_accumulation_steps=settings.gradient_accumulation,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup,
        max_grad_norm=settings.max_grad_norm,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        fp16=half,
        bf16=brain,
        seed=settings.seed,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,  # the best and the last; with 1 a stop would delete the last
        load_best_model_at_end=True,
        metric_for_best_model=BEST,
        greater_is_better=True,
        logging_strategy="steps",
        logging_steps=max(1, steps_per_epoch // 20),
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        label_names=["labels"],
    )
    callbacks: list[TrainerCallback] = []
    if settings.early_stopping:
        callbacks.append(EarlyStoppingCallback(settings.early_stopping))
    if settings.save_steps:
        callbacks.append(SaveEvery(settings.save_steps))
    trainer = OrderedTrainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=calibration,
        data_collator=functools.partial(collate, encoder),
        compute_metrics=functools.partial(_metrics, model.config.exit_layers),
        preprocess_logits_for_metrics=_predictions,  # type: ignore[arg-type]  # gets a tuple
        callbacks=callbacks,
    )
    for name in ("PrinterCallback", "ProgressCallback"):
        for callback in list(trainer.callback_handler.callbacks):
            if type(callback).__name__ == name:
                trainer.remove_callback(callback)
    return trainer


class SaveEvery(TrainerCallback):
    """Extra checkpoints within an epoch, for trainings that may be killed."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self.steps == 0:
            control.should_save = True


def _run(trainer: Trainer, scratch: Path, progress: bool) -> float:
    if progress:
        trainer.add_callback(LiveProgress("training"))
    checkpoint = _last_checkpoint(scratch)
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


def _last_checkpoint(scratch: Path) -> str | None:
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


def _precision(wanted: str) -> tuple[bool, bool]:
    """(fp16, bf16). `auto` uses what a GPU is good at and stays in fp32 on a CPU."""
    if wanted == "auto" and torch.cuda.is_available():
        wanted = "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    return wanted == "fp16", wanted == "bf16"


def _predictions(outputs: tuple[torch.Tensor, ...], labels: torch.Tensor) -> torch.Tensor:
    """Only the exits' predictions are gathered, (rows, exits)."""
    return outputs[1].argmax(-1)


def _metrics(layers: list[int], result: EvalPrediction) -> dict[str, float]:
    right = np.asarray(result.predictions) == np.asarray(result.label_ids)[:, None]
    per_exit = {f"accuracy_layer_{m}": float(right[:, i].mean()) for i, m in enumerate(layers)}
    return {BEST: float(right.mean()), **per_exit}


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
    if model.prototypes is not None:
        nearest = model.prototypes.separation()
        merged = [
            m for m, d in zip(model.config.exit_layers, nearest.tolist(), strict=False) if d < 1e-3
        ]
        if merged:
            notes.append(f"prototypes of different classes have all but merged at layers {merged}")
    return notes
