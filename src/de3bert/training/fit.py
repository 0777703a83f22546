"""Training a model folder from a recipe."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from de3bert.card import write_card
from de3bert.errors import UsageError
from de3bert.exits.metrics import METRICS
from de3bert.exits.word_curve import WORD_METRICS
from de3bert.files import replace_folder, write_json, write_text
from de3bert.methods import METHODS, Method
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.model.word_encoder import WordEncoder
from de3bert.training.finish import FINISHES
from de3bert.training.passes import exit_logits
from de3bert.training.place import (
    MARKER,
    check_place,
    check_scratch,
    is_finished,
    scratch_folder,
)
from de3bert.training.recipe import Recipe, recipe_text
from de3bert.training.refresh import refresh_prototypes
from de3bert.training.rows import Rows, Splits, read_splits
from de3bert.training.schedule import Schedule
from de3bert.training.token_tables import check_single_texts
from de3bert.training.words import (
    WordRows,
    WordSplits,
    check_task,
    read_word_splits,
    word_logits,
)

__all__ = ["Trained", "fit", "is_finished"]

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
    splits: Splits | WordSplits | None = None,
    teacher: str | Path | None = None,
) -> Trained:
    """Trains by the recipe and writes a model folder; an interrupted training goes on where it was.

    Checkpoints live in `OUT.training` until the model folder is complete. `fresh` discards them.

    Args:
        teacher: folder of a model to learn from, for methods that have a teacher; without it one
            is trained first.
    """
    out = Path(out)
    method = METHODS[recipe.method]
    check_task(recipe, method)
    words = recipe.data.task == "words"
    # An unknown metric is refused before the work, not after.
    (WORD_METRICS if words else METRICS)[recipe.data.metric]
    _check_teacher(method, teacher)
    check_place(out, overwrite)
    scratch = scratch_folder(out)
    if fresh:
        shutil.rmtree(scratch, ignore_errors=True)
    set_seed(recipe.train.seed)
    read = read_word_splits if words else read_splits
    splits = splits or read(recipe.data, recipe.train.seed)
    if isinstance(splits, Splits):
        check_single_texts(method, splits.train)
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
    model.config.numbered_labels = splits.labels.positions
    if isinstance(splits, Splits):
        model.config.text_pairs = splits.train.pairs is not None
    kind = WordEncoder if words else TextEncoder
    encoder = kind(load_tokenizer(recipe.backbone), model.config.max_length)
    rows, cut = _rows(encoder, splits.train, splits.train_labels)
    held, _ = _rows(encoder, splits.calibration, splits.calibration_labels)
    schedule = Schedule(method, recipe, model, encoder, rows, held, scratch)
    # Only now, when nothing can be wrong with the request any more, is something written.
    write_text(scratch / MARKER, fingerprint)
    if method.teacher is not None and teacher is None:
        teacher = _trained_teacher(recipe, method.teacher, scratch, splits, progress)
    done = schedule.run(None if teacher is None else Path(teacher), progress)
    if recipe.train.refresh_prototypes:
        refresh_prototypes(model, rows, encoder)
    if method.finish is not None:
        FINISHES[method.finish](model, held, encoder)
    accuracy = _exit_accuracy(model, held, encoder)
    notes = _notes(model, accuracy, held, cut, len(rows))
    record = {
        "schema": 1,
        "backbone": "/".join(Path(recipe.backbone).parts[-2:]),  # no path of this machine
        "seconds": done.seconds,
        "steps": done.steps,
        "phases": done.phases,
        "rows": {"train": len(rows), "calibration": len(held)},
        "data": {"train": splits.train.sha256, "calibration": splits.calibration.sha256},
        "exit_accuracy": accuracy,
        "prototype_separation": _separation(model),
        "notes": notes,
        "log": done.log,
    }
    _save(out, model, encoder, recipe, record)
    shutil.rmtree(scratch, ignore_errors=True)
    return Trained(out, accuracy, done.seconds, done.steps, notes)


def _check_teacher(method: Method, teacher: str | Path | None) -> None:
    if teacher is None:
        return
    if method.teacher is None:
        raise UsageError(f"Method {method.name} has no teacher, but one was given: {teacher}.")
    if not is_finished(Path(teacher)):
        raise UsageError(f"The teacher {teacher} is not a model folder of de3bert.")


def _trained_teacher(
    recipe: Recipe, method: str, scratch: Path, splits: Splits | WordSplits, progress: bool
) -> Path:
    """The teacher, trained on the same rows by the same recipe."""
    folder = scratch / "teacher"
    if not is_finished(folder):
        own: dict[str, Any] = {"method": method, "method_options": {}}
        own |= {"prototypes": None, "exit_layers": None}
        fit(recipe.model_copy(update=own), folder, progress=progress, splits=splits)
    return folder


def _rows(encoder: TextEncoder, table: Any, labels: Any) -> tuple[Rows, int]:
    """A table's rows in tokens, and how many of them were cut to the model's length."""
    encoded = encoder(table.inputs())
    kind = WordRows if isinstance(encoder, WordEncoder) else Rows
    return kind(encoded, labels), encoded.truncated


def _labels(held: Rows) -> torch.Tensor:
    """The class of every row, or of every word. (rows,)"""
    if isinstance(held, WordRows):
        return held.tags()
    return torch.tensor([row["labels"] for row in held.rows])


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


def _exit_accuracy(
    model: EarlyExitForSequenceClassification, held: Rows, encoder: TextEncoder
) -> dict[int, float]:
    """Layer -> accuracy of its exit on the calibration rows."""
    if isinstance(held, WordRows):
        said = torch.cat(word_logits(model, held, encoder))
    else:
        said = exit_logits(model, held, encoder)
    right = said.argmax(-1) == _labels(held)[:, None]
    shares = right.double().mean(0).tolist()
    return dict(zip(model.config.exit_layers or [], shares, strict=True))


def _notes(
    model: EarlyExitForSequenceClassification,
    accuracy: dict[int, float],
    held: Rows,
    truncated: int,
    rows: int,
) -> list[str]:
    notes = []
    if truncated:
        notes.append(
            f"{truncated} of {rows} training texts were cut to {model.config.max_length} tokens"
        )
    labels = _labels(held)
    majority = float(labels.bincount().max()) / len(labels)
    at_chance = [m for m, value in accuracy.items() if value <= majority + 0.02]
    if at_chance:
        listed = ", ".join(map(str, at_chance))
        notes.append(
            f"the exits at layers {listed} are no better than always answering the commonest "
            f'class; they read "{model.config.pooling}", try another pooling (mean, '
            "shared_pooler), a higher `head_rate` or more epochs"
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
