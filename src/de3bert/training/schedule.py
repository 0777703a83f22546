"""The phases of a method, run one after the other; each can be resumed, none is repeated."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import IntervalStrategy

from de3bert.data.read import read_inputs
from de3bert.files import read_json, replace_file, write_json
from de3bert.methods import Method, Phase
from de3bert.model import EarlyExitModel
from de3bert.model.groups import GROUPS, train_only
from de3bert.model.tokens import TextEncoder
from de3bert.training.hooks import HOOKS, ClockCallback, Hook, PhaseContext
from de3bert.training.recipe import Recipe, TrainRecipe
from de3bert.training.rows import Rows
from de3bert.training.run_trainer import run_trainer, written
from de3bert.training.seal import is_whole, seal
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
    """All phases of a training. What they name is checked when this is made.

    Args:
        scratch: where checkpoints are kept.
        progress: whether to say how far it is.
        trust_remote_code: whether hooks that load the backbone again may run its own code.
    """

    def __init__(
        self,
        method: Method,
        recipe: Recipe,
        model: EarlyExitModel,
        encoder: TextEncoder,
        rows: Rows,
        held: Rows,
        scratch: Path,
        *,
        progress: bool = True,
        trust_remote_code: bool = False,
    ) -> None:
        self.method, self.recipe, self.model, self.encoder = method, recipe, model, encoder
        self.rows, self.held, self.scratch = rows, held, scratch
        self.progress, self.trust_remote_code = progress, trust_remote_code
        self.options = dict(model.config.method_options or {})
        for phase in method.phases:
            for group in phase.trains:
                GROUPS[group]
        self._check_hooks(None)
        self.texts = rows
        if any(phase.rows == "unlabelled" and self._share(phase) for phase in method.phases):
            self.texts = self._unlabelled()

    def run(self, teacher: Path | None) -> Done:
        """Runs every phase that is not done yet; the model ends with the last one's weights."""
        done = Done()
        if teacher is not None:
            self._check_hooks(teacher)
        for number, phase in enumerate(self.method.phases, start=1):
            if self._share(phase) == 0:  # the options leave it out
                continue
            alone = len(self.method.phases) == 1
            place = self.scratch if alone else self.scratch / f"{number}-{phase.name}"
            done.add(self._kept(place) or self._new(phase, place, teacher))
        return done

    def _kept(self, place: Path) -> dict[str, Any] | None:
        """The record of a phase that was done before, its weights loaded; None where it was not."""
        if not (place / RECORD).exists():
            return None
        if not is_whole(place):
            LOG.warning(
                "The result of a finished phase in %s is incomplete; the phase is run again.", place
            )
            return None
        self.model.load_state_dict(torch.load(place / WEIGHTS, weights_only=True))
        return read_json(place / RECORD)

    def _new(self, phase: Phase, place: Path, teacher: Path | None) -> dict[str, Any]:
        """Runs a phase and keeps what it gave."""
        record = self._phase(phase, place, teacher)
        with replace_file(place / WEIGHTS) as path:
            torch.save(self.model.state_dict(), path)
        write_json(place / RECORD, record)
        with written(place):
            seal(place, (WEIGHTS, RECORD))
        return record

    def _phase(self, phase: Phase, place: Path, teacher: Path | None) -> dict[str, Any]:
        model = self.model
        rows = self.rows if phase.rows == "labelled" else self.texts
        rows.extras, self.held.extras = {}, {}
        model.objective.enter(phase.terms)
        train_only(model, phase.trains)
        hook = self._hook(phase, rows, teacher, place)
        if hook is not None:
            hook.before()
        trainer = build_trainer(
            model, self._settings(phase), place, rows, self.held, self.encoder, phase.judge
        )
        trainer.phase = phase.name
        trainer.add_callback(ClockCallback(model, hook))
        if phase.rows == "unlabelled":  # no labels, no score: the last step is what it gives
            trainer.args.eval_strategy = IntervalStrategy.NO
        seconds = run_trainer(trainer, place, phase.name, self.progress)
        trainer.check_weights()
        if hook is not None:
            hook.after()
        train_only(model, ())
        model.objective.enter(self.method.terms)
        log = [_plain(entry) for entry in trainer.state.log_history]
        steps = trainer.state.global_step
        if hook is not None:
            seconds, steps = seconds + hook.seconds, steps + hook.steps
        return {"name": phase.name, "seconds": seconds, "steps": steps, "log": log}

    def _check_hooks(self, teacher: Path | None) -> None:
        for phase in self.method.phases:
            hook = self._hook(phase, self.rows, teacher)
            if hook is not None and self._share(phase) > 0:
                hook.check()

    def _hook(
        self, phase: Phase, rows: Rows, teacher: Path | None, place: Path | None = None
    ) -> Hook | None:
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
            progress=self.progress,
            trust_remote_code=self.trust_remote_code,
            settings=self.recipe.train,
            place=place,
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
        if phase.own_rate is not None:  # the same for heads and routers
            changed |= {"learning_rate": number(phase.own_rate, self.options), "head_rate": 1.0}
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


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """A line of the log as JSON has it: the norm of gradients may be infinite in fp16."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in entry.items()
    }
