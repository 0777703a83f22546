"""All step hooks by name; those of single methods are in files of their own.

Register one under a name and write that name in the phase. Importing this registers all of them.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from de3bert.model import EarlyExitModel
from de3bert.objective import Clock
from de3bert.training.difficulty import Difficulty
from de3bert.training.distillation import TeacherLogits, TeacherStates
from de3bert.training.hook import HOOKS, Hook, PhaseContext
from de3bert.training.inference import exit_logits
from de3bert.training.masking import MaskedTeacher, MaskedText
from de3bert.training.replacing import Replacing
from de3bert.training.self_sampling import SelfSampling
from de3bert.training.token_tables import FillTokenTable

__all__ = [
    "HOOKS",
    "ClockCallback",
    "Difficulty",
    "FillTokenTable",
    "Hook",
    "MaskedTeacher",
    "MaskedText",
    "Memorised",
    "PhaseContext",
    "Replacing",
    "RowNumbers",
    "SelfSampling",
    "TeacherLogits",
    "TeacherStates",
]


@HOOKS.register("row_numbers")
class RowNumbers(Hook):
    """Tells losses which row is which: `extras["row"]`."""

    def before(self) -> None:
        self.context.rows.extras["row"] = torch.arange(len(self.context.rows))


@HOOKS.register("memorised")
class Memorised(Hook):
    """`extras["memorised"]`: the layer from which on every exit is right (ConsistentEE).

    Calibration rows get it as well: checkpoints are compared by the reward on them, with the same
    prices in every epoch.
    """

    def before(self) -> None:
        from de3bert.objective.reward import memorised_layer

        context = self.context
        label = context.label("what is memorised")
        for rows in (context.rows, context.held):
            said = exit_logits(context.model, rows, context.encoder, label).argmax(-1)
            right = said == rows.unit_labels()[:, None]
            rows.extras["memorised"] = memorised_layer(right)


class ClockCallback(TrainerCallback):
    """Tells the loss and the hook, before every step, where the phase stands."""

    def __init__(self, model: EarlyExitModel, hook: Hook | None) -> None:
        self.model = model
        self.hook = hook

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        clock = Clock(state.global_step, state.max_steps, int(state.epoch or 0.0), args.seed)
        self.model.objective.clock = clock
        if self.hook is not None:
            self.hook.step(clock)
