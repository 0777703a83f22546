"""The Trainer with checkpoints that can be trusted: finite weights, sealed, the best one kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import Trainer
from transformers.trainer_utils import rotate_checkpoints

from de3bert.training.diverged import DivergedError, diverged, unsound
from de3bert.training.output_folder import newest_checkpoint
from de3bert.training.seal import seal

__all__ = ["GuardedTrainer"]

KEPT = 2  # the best and the last; with 1 a stop would delete the last


class GuardedTrainer(Trainer):
    """Stops at the first loss that is no finite number, and writes no weights that are none.

    Attributes:
        phase: its name, for messages.
    """

    phase = "train"

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        loss = super().training_step(model, inputs, num_items_in_batch)
        value = float(loss)
        if not math.isfinite(value):  # before the optimiser's step, which would spoil the weights
            raise self._diverged(f"the loss is {value:g}", self.state.global_step + 1)
        return loss

    def check_weights(self) -> None:
        """An error where a weight is not finite: a step can do that after a finite loss."""
        assert isinstance(self.model, nn.Module)
        name = unsound(self.model)
        if name is not None:
            raise self._diverged(f"weights are not finite ({name})", self.state.global_step)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        self.check_weights()
        super()._save_checkpoint(model, trial)
        scratch = Path(str(self.args.output_dir))
        seal(scratch / f"checkpoint-{self.state.global_step}")
        # Only now, when the new one is whole, may an old one go.
        rotate_checkpoints(str(scratch), KEPT, self._best())

    def _load_best_model(self) -> None:
        self.state.best_model_checkpoint = self._best()
        super()._load_best_model()

    def _best(self) -> str | None:
        """The best checkpoint where it is now: the folder may have been moved since."""
        best = self.state.best_model_checkpoint
        return None if best is None else str(Path(str(self.args.output_dir)) / Path(best).name)

    def _diverged(self, what: str, step: int) -> DivergedError:
        return diverged(
            what,
            self.phase,
            step,
            self.state.epoch or 0.0,
            self.args.learning_rate,
            newest_checkpoint(Path(str(self.args.output_dir))),
        )
