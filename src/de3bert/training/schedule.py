"""The phases of a method, run one after the other; each can be resumed, none is repeated."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import IntervalStrategy, Trainer

from de3bert.data.read import read_inputs
from de3bert.errors import De3Error, UsageError
from de3bert.files import disk_is_full, replace_file, write_json
from de3bert.methods import Method, Phase
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.groups import GROUPS, train_only
from de3bert.model.tokens import TextEncoder
from de3bert.training.callbacks import LiveProgress, SaveOnSignal
from de3bert.training.hooks import HOOKS, ClockCallback, Hook, PhaseContext
from de3bert.training.place import last_checkpoint
from de3bert.training.recipe import Recipe, TrainRecipe
from de3bert.training.rows import Rows
from de3bert.training.trainer import build_trainer

__all__ = ["Done", "Schedule"]

LOG = logging.getLogger(__name__)
WEIGHTS, RECORD = "weights.pt", "phase.json"


@dataclass
class Done:
    """What the phases took and said, in sum."""

    seconds: float = 0.0
    steps: int = 0
    phases: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)

    def add(self, record: dict[str, Any]) -> None:
        self.seconds += record["seconds"]
        self.steps += record["steps"]
        self.phases.append({name: record[name] for name in ("name", "steps", "seconds")})
        self.log.extend(record["log"])


class Schedule:
    """All phases of a training. What they name is checked when this is made."""

    def __init__(
        self,
        method: Method,
        recipe: Recipe,
        model: EarlyExitForSequenceClassification,
        encoder: TextEncoder,
        rows: Rows,
        held: Rows,
        scratch: Path,
    ) -> None:
        self.method, self.recipe, self.model, self.encoder = method, recipe, model, encoder
        self.rows, self.held, self.scratch = rows, held, scratch
        self.options = dict(model.config.method_options or {})
        for phase in method.phases:
            for group in phase.trains:
                GROUPS[group]
            if self._share(phase) < 0:
                raise UsageError(f"Phase {phase.name} cannot take {self._share(phase):g} epochs.")
        self._check_hooks(None)
        self.texts = rows
        if any(phase.rows == "unlabelled" and self._share(phase) for phase in method.phases):
            self.texts = self._unlabelled()

    def run(self, teacher: Path | None, progress: bool) -> Done:
        """Runs every phase that is not done yet; the model ends with the last one's weights."""
        done = Done()
        if teacher is not None:
            self._check_hooks(teacher)
        for number, phase in enumerate(self.method.phases, start=1):
            if self._share(phase) == 0:  # the options leave it out
                continue
            alone = len(self.method.phases) == 1
            place = self.scratch if alone else self.scratch / f"{number}-{phase.name}"
            if not (place / RECORD).exists():
                record = self._phase(phase, place, teacher, progress)
                with replace_file(place / WEIGHTS) as path:
                    torch.save(self.model.state_dict(), path)
                write_json(place / RECORD, record)
            else:
                state = torch.load(place / WEIGHTS, weights_only=True)
                self.model.load_state_dict(state)
            done.add(json.loads((place / RECORD).read_text(encoding="utf-8")))
        return done

    def _phase(
        self, phase: Phase, place: Path, teacher: Path | None, progress: bool
    ) -> dict[str, Any]:
        model = self.model
        rows = self.rows if phase.rows == "labelled" else self.texts
        rows.extras = {}
        model.objective.enter(phase.terms)
        train_only(model, phase.trains)
        hook = self._hook(phase, rows, teacher)
        if hook is not None:
            hook.before()
        trainer = build_trainer(
            model, self._settings(phase), place, rows, self.held, self.encoder, phase.judge
        )
        trainer.add_callback(ClockCallback(model, hook))
        if phase.rows == "unlabelled":  # no labels, no score: the last step is what it gives
            trainer.args.eval_strategy = IntervalStrategy.NO
        seconds = _run(trainer, place, phase.name, progress)
        if hook is not None:
            hook.after()
        train_only(model, ())
        model.objective.enter(self.method.terms)
        steps, log = trainer.state.global_step, trainer.state.log_history
        return {"name": phase.name, "seconds": seconds, "steps": steps, "log": log}

    def _check_hooks(self, teacher: Path | None) -> None:
        for phase in self.method.phases:
            hook = self._hook(phase, self.rows, teacher)
            if hook is not None and self._share(phase) > 0:
                hook.check()

    def _hook(self, phase: Phase, rows: Rows, teacher: Path | None) -> Hook | None:
        if phase.hook is None:
            return None
        context = PhaseContext(
            self.model,
            rows,
            self.held,
            self.encoder,
            self.options,
            self.recipe.backbone,
            teacher,
            self.recipe.train.seed,
        )
        return HOOKS[phase.hook](context)

    def _share(self, phase: Phase) -> float:
        """The epochs of a phase, as a multiple of the recipe's."""
        return self.method.number(phase.epochs, self.options)

    def _settings(self, phase: Phase) -> TrainRecipe:
        settings, number = self.recipe.train, self.method.number
        changed: dict[str, float] = {
            "epochs": settings.epochs * self._share(phase),
            "learning_rate": settings.learning_rate * number(phase.learning_rate, self.options),
        }
        if phase.rows == "unlabelled":
            changed["early_stopping"] = 0  # it would wait for scores
        return settings.model_copy(update=changed)

    def _unlabelled(self) -> Rows:
        """Rows of text alone: the recipe's own file of it, else the training texts."""
        data = self.recipe.data
        if data.unlabelled is None:
            return self.rows
        table = read_inputs(data.unlabelled, text=data.text, text_pair=data.text_pair)
        encoded = self.encoder(table.inputs())
        return Rows(encoded, np.zeros(len(encoded.rows), dtype=np.int64))


def _run(trainer: Trainer, scratch: Path, label: str, progress: bool) -> float:
    if progress:
        trainer.add_callback(LiveProgress("training" if label == "train" else label))
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
