"""What a step hook is: what a phase of training needs besides a loss.

A hook may compute something per row before the phase (it becomes `batch.extras`), change the model
for the time of the phase, and take part in every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from de3bert.errors import De3Error
from de3bert.methods.method import OptionValue
from de3bert.model import EarlyExitModel
from de3bert.model.loading import read_model
from de3bert.model.tokens import TextEncoder
from de3bert.objective import Clock
from de3bert.registry import Registry
from de3bert.training.recipe import TrainRecipe
from de3bert.training.rows import Rows

__all__ = ["HOOKS", "Hook", "PhaseContext"]


@dataclass
class PhaseContext:
    """What a hook may use.

    Attributes:
        rows: the training rows; their `extras` may be set.
        held: the calibration rows.
        backbone: folder or hub id of the pretrained encoder the model was made from.
        teacher: folder of the model to learn from, for methods that have one.
        seed: of the training.
        progress: whether long passes say how far they are.
        trust_remote_code: whether the backbone's own code may be run when it is loaded again.
        settings: the recipe's, for hooks that train models of their own.
        place: the folder of the phase, for what takes long to make again; None: not to be kept.
    """

    model: EarlyExitModel
    rows: Rows
    held: Rows
    encoder: TextEncoder
    options: Mapping[str, OptionValue]
    backbone: str
    teacher: Path | None
    seed: int
    progress: bool = False
    trust_remote_code: bool = False
    settings: TrainRecipe = field(default_factory=TrainRecipe)
    place: Path | None = None

    def label(self, text: str) -> str | None:
        """The label of a pass's progress, None where none is wanted."""
        return text if self.progress else None

    def teacher_model(self) -> EarlyExitModel:
        if self.teacher is None:
            raise De3Error("This phase learns from a teacher, and none was trained.")
        return read_model(str(self.teacher)).eval().requires_grad_(False)


class Hook:
    """The base of all hooks: does nothing.

    Attributes:
        steps: optimizer steps that it took itself, and `seconds` that these lasted; counted with
            the phase's.
    """

    steps: int = 0
    seconds: float = 0.0

    def __init__(self, context: PhaseContext) -> None:
        self.context = context

    def check(self) -> None:
        """Refuses what it could not do, before anything is trained.

        Called once before the teacher is there and once when it is.
        """

    def before(self) -> None:
        """Before the phase, also when it is resumed."""

    def step(self, clock: Clock) -> None:
        """Before every step."""

    def after(self) -> None:
        """After the phase."""


HOOKS: Registry[type[Hook]] = Registry("step hook")
