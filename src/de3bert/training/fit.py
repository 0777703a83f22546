"""Training a model folder from a recipe."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import set_seed

from de3bert.card import write_card
from de3bert.data.hub import hub_id
from de3bert.errors import De3Error, UsageError
from de3bert.files import replace_folder, write_json, write_text
from de3bert.methods import METHODS
from de3bert.model import EarlyExitModel
from de3bert.model.attaching import with_exits
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.model.word_encoder import encoder_of
from de3bert.training.diverged import unsound
from de3bert.training.finish import FINISHES
from de3bert.training.fitted import FitRows, fit_exits
from de3bert.training.output_folder import (
    MARKER,
    check_scratch,
    clear,
    is_finished,
    scratch_folder,
    taken,
)
from de3bert.training.recipe import Recipe, recipe_text
from de3bert.training.refresh import refresh_prototypes
from de3bert.training.request import check_request, read_rows
from de3bert.training.rows import Rows
from de3bert.training.schedule import Done, Schedule
from de3bert.training.seal import is_whole, seal
from de3bert.training.splits import Splits
from de3bert.training.trainer import precision
from de3bert.training.verdict import exit_accuracy, notes_on, separation

__all__ = ["Trained", "fit", "is_finished"]

LOG = logging.getLogger(__name__)


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
    teacher: str | Path | None = None,
    trust_remote_code: bool = False,
) -> Trained:
    """Trains by the recipe and writes a model folder; an interrupted training is resumed.

    Checkpoints live in `OUT.training` until the model folder is complete. `fresh` discards them.
    One process at a time trains there.

    Args:
        splits: the rows, where they have been read already.
        teacher: folder of a model to learn from, for methods that have a teacher; without it one
            is trained first.
        trust_remote_code: runs Python code that comes with the backbone's folder.

    Raises:
        UsageError: something about the request is wrong.
        De3Error: the training diverged, or could not be written; checkpoints are kept.
    """
    out = Path(out)
    check_request(recipe, out, overwrite=overwrite, teacher=teacher)
    scratch = scratch_folder(out)
    with taken(scratch):
        if fresh:
            clear(scratch)
        splits = splits or read_rows(recipe)
        training = TrainingRun(recipe, splits, scratch, progress, trust_remote_code)
        trained = training.run(out, None if teacher is None else Path(teacher))
        shutil.rmtree(scratch, ignore_errors=True)
    return trained


class TrainingRun:
    """One training whose request is valid: what it is made of, then the run.

    Args:
        scratch: its own folder for checkpoints.
    """

    def __init__(
        self,
        recipe: Recipe,
        splits: Splits,
        scratch: Path,
        progress: bool,
        trust_remote_code: bool,
    ) -> None:
        self.recipe, self.splits, self.scratch = recipe, splits, scratch
        self.progress, self.trust_remote_code = progress, trust_remote_code
        self.method = METHODS[recipe.method]
        # Exits that are fitted come after a training that is another method's.
        self.trained = METHODS[self.method.base] if self.method.base else self.method
        precision(recipe.train)  # refused now if this machine cannot
        set_seed(recipe.train.seed)
        self.fingerprint = f"{recipe.fingerprint()} {splits.fingerprint()}"
        check_scratch(scratch, self.fingerprint)
        self.model = self._model()
        tokenizer = load_tokenizer(recipe.backbone, trust_remote_code=trust_remote_code)
        self.encoder = encoder_of(splits.task.name, tokenizer, self.model.config.max_length)
        self.rows, self.cut = _rows(self.encoder, splits.train, splits.train_labels)
        self.held, _ = _rows(self.encoder, splits.calibration, splits.calibration_labels)

    def run(self, out: Path, teacher: Path | None) -> Trained:
        """Trains what is left to train and writes the model folder."""
        recipe, model = self.recipe, self.model
        schedule = Schedule(
            self.trained, recipe, model, self.encoder, self.rows, self.held, self.scratch,
            progress=self.progress, trust_remote_code=self.trust_remote_code,
        )  # fmt: skip
        # Only now, when nothing can be wrong with the request any more, is something written.
        write_text(self.scratch / MARKER, self.fingerprint)
        if self.method.teacher is not None and teacher is None:
            teacher = self._trained_teacher(self.method.teacher)
        done = schedule.run(teacher)
        if recipe.train.refresh_prototypes:
            label = self._label("prototypes of all rows")
            refresh_prototypes(model, self.rows, self.encoder, progress=label)
        if self.method.finish is not None:
            FINISHES[self.method.finish](model, self.held, self.encoder)
        if self.method.exits != "trained":
            model = self.model = self._with_fitted_exits()
        label = self._label("scoring the calibration rows")
        accuracy = exit_accuracy(model, self.held, self.encoder, label)
        notes = notes_on(model, accuracy, self.held, self.cut, len(self.rows))
        _save(out, model, self.encoder, recipe, self._record(done, accuracy, notes))
        return Trained(out, accuracy, done.seconds, done.steps, notes)

    def _with_fitted_exits(self) -> EarlyExitModel:
        """The trained model with exits in closed form, to the labels or to its own answers."""
        layers = self.recipe.exit_layers
        model = with_exits(self.model, method=self.method.name, exit_layers=layers)
        known = self.method.exits == "fitted"
        train = FitRows.of(self.rows, labels=known)
        held = FitRows.of(self.held, labels=known)
        fit_exits(model, self.encoder, train, held, self.scratch, progress=self.progress)
        assert model.config.fitted is not None
        splits = self.splits
        model.config.fitted["data"] = sorted({splits.train.sha256, splits.calibration.sha256})
        return model

    def _label(self, text: str) -> str | None:
        return text if self.progress else None

    def _model(self) -> EarlyExitModel:
        """Fresh exits on the backbone, for the classes of the rows."""
        recipe, splits = self.recipe, self.splits
        model = EarlyExitModel.from_backbone(
            recipe.backbone,
            labels=splits.labels.names,
            method=self.trained.name,
            pooling=recipe.pooling,
            prototypes=recipe.prototypes,
            exit_layers=recipe.exit_layers,
            max_length=recipe.data.max_length,
            small_backbone=recipe.small_backbone,
            trust_remote_code=self.trust_remote_code,
            **recipe.method_options,  # type: ignore[arg-type]  # their names are checked there
        )
        if recipe.train.refresh_prototypes and model.prototypes is None:
            raise UsageError(
                "refresh_prototypes is set, but this model has no prototypes to refresh."
            )
        model.config.metric = recipe.data.metric
        model.config.numbered_labels = splits.labels.positions
        if not splits.task.splits_words:
            model.config.text_pairs = splits.train.pairs is not None
        return model

    def _trained_teacher(self, method: str) -> Path:
        """The teacher, trained on the same rows by the same recipe."""
        folder = self.scratch / "teacher"
        if not is_whole(folder):
            if folder.exists():
                LOG.warning("The teacher in %s is incomplete; it is trained again.", folder)
            shutil.rmtree(folder, ignore_errors=True)
            own: dict[str, Any] = {"method": method, "method_options": {}}
            own |= {"prototypes": None, "exit_layers": None}
            fit(
                self.recipe.model_copy(update=own),
                folder,
                progress=self.progress,
                splits=self.splits,
                trust_remote_code=self.trust_remote_code,
            )
            seal(folder)
        return folder

    def _record(self, done: Done, accuracy: dict[int, float], notes: list[str]) -> dict[str, Any]:
        """What `training.json` says."""
        splits = self.splits
        return {
            "schema": 1,
            "backbone": _short(self.recipe.backbone),
            **({"small_backbone": _short(small)} if (small := self.recipe.small_backbone) else {}),
            "base_model": hub_id(self.recipe.backbone),
            "datasets": [name] if (name := hub_id(self.recipe.data.train)) else [],
            "seconds": done.seconds,
            "steps": done.steps,
            "phases": done.phases,
            "rows": {"train": len(self.rows), "calibration": len(self.held)},
            "data": {"train": splits.train.sha256, "calibration": splits.calibration.sha256},
            "exit_accuracy": accuracy,
            "prototype_separation": separation(self.model),
            "notes": notes,
            "log": done.log,
        }


def _short(source: str) -> str:
    """The name of an encoder, with no path of this machine."""
    return "/".join(Path(source).parts[-2:])


def _rows(encoder: TextEncoder, table: Any, labels: Any) -> tuple[Rows, int]:
    """A table's rows in tokens, and how many of them were cut to the model's length."""
    encoded = encoder(table.inputs())
    return Rows(encoded, labels), encoded.truncated


def _save(
    out: Path,
    model: EarlyExitModel,
    encoder: TextEncoder,
    recipe: Recipe,
    record: dict[str, Any],
) -> None:
    """The whole model folder, or nothing."""
    spoilt = unsound(model)
    if spoilt is not None:
        raise De3Error(f"The model is not saved: its weights are not finite ({spoilt}).")
    with replace_folder(out) as folder:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        write_text(folder / "recipe.toml", recipe_text(recipe))
        write_json(folder / "training.json", record)
        write_card(folder, out.absolute().name)
