"""Small hooks on the Hugging Face Trainer: progress, and stopping so that work can go on later."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from de3bert.progress import Ticker, on_terminal

__all__ = ["LiveProgress", "SaveEvery", "SaveOnSignal"]


class LiveProgress(TrainerCallback):
    """How far a phase is, on stderr, with the current loss and the last calibration score.

    A bar where there is a terminal, else a line every so often.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.notes: dict[str, str] = {}
        self.bar: Progress | None = None
        if on_terminal():
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.ticker = Ticker(self.label, state.max_steps, "steps")
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task(
                self.label, total=state.max_steps, completed=state.global_step, note=""
            )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._show(state.global_step)

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._show(state.global_step, "scoring the calibration rows")

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        logs = kwargs.get("logs") or {}
        if "loss" in logs:
            self.notes["loss"] = f"loss {float(logs['loss']):.3f}"
        if "eval_mean_exit_accuracy" in logs:
            self.notes["exits"] = f"exits {float(logs['eval_mean_exit_accuracy']):.3f}"
        self._show(state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.bar is None:
            self.ticker.finish(state.global_step, self._note())
        self.stop()

    def stop(self) -> None:
        """Takes the bar off, also where the training has ended in an error."""
        if self.bar is not None:
            self.bar.stop()

    def _show(self, step: int, doing: str = "") -> None:
        if self.bar is not None:
            self.bar.update(self.task, completed=step, note=self._note(doing))
        else:
            self.ticker.update(step, self._note(doing))

    def _note(self, doing: str = "") -> str:
        return "  ".join(filter(None, (*self.notes.values(), doing)))


class SaveOnSignal(TrainerCallback):
    """Ctrl-C or SIGTERM ends the step, writes a checkpoint and stops; a second stops at once."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._old: dict[int, Any] = {}

    def __enter__(self) -> SaveOnSignal:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._old[number] = signal.signal(number, self._catch)
            except ValueError:  # not the main thread: signals are somebody else's business
                break
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if self.caught is not None:
            raise KeyboardInterrupt
        self.caught = number

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.caught is not None:
            control.should_save = True
            control.should_training_stop = True

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # The Trainer takes the stop for the end of an epoch. A score in the middle of one must not
        # enter the choice of the best checkpoint: the training that is resumed would end otherwise.
        if self.caught is not None and not float(state.epoch or 0.0).is_integer():
            control.should_evaluate = False
            control.should_save = False


class SaveEvery(TrainerCallback):
    """Extra checkpoints within an epoch, for trainings that may be killed."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.global_step % self.steps == 0:
            control.should_save = True
