"""The Hugging Face Trainer, set up by a recipe."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    EarlyStoppingCallback,
    EvalPrediction,
    TrainerCallback,
    TrainingArguments,
)

from de3bert.errors import UsageError
from de3bert.model import EarlyExitModel
from de3bert.model.tokens import TextEncoder
from de3bert.model.word_encoder import NO_LABEL
from de3bert.training.callbacks import SaveEvery
from de3bert.training.checkpoints import GuardedTrainer
from de3bert.training.recipe import TrainRecipe
from de3bert.training.rows import Rows, collate
from de3bert.training.sampling import EpochOrder

__all__ = ["OrderedTrainer", "build_trainer", "exit_metrics", "precision"]

BEST = {"mean": "mean_exit_accuracy", "last": "last_exit_accuracy", "loss": "loss"}


class OrderedTrainer(GuardedTrainer):
    """The Trainer with `EpochOrder`: a resumed training sees the rows it would have seen."""

    head_learning_rate: float | None = None  # None: the encoder's

    def _get_train_sampler(self, train_dataset: Dataset[Any] | None = None) -> EpochOrder:
        rows = self.train_dataset if train_dataset is None else train_dataset
        assert isinstance(rows, Rows)  # `fit` gives no other
        step = self.args.train_batch_size * self.args.gradient_accumulation_steps
        group = step if self.args.train_sampling_strategy == "group_by_length" else None
        return EpochOrder(
            rows.lengths,
            self.args.train_batch_size,
            group,
            self.args.seed,
            lambda: self.state.epoch or 0.0,
        )

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """As usual, with rates of their own for parts that start from nothing.

        Parts that say they are `fresh` (heads and routers) learn at the recipe's
        `head_learning_rate`. Projectors do not: with the center loss alone, nothing but slowness
        keeps them from mapping all rows to one point. A loss that learns states its own rate.
        """
        optimizer = super().create_optimizer(model)
        parts = list(self.model.modules())  # type: ignore[union-attr]  # `fit` gives a model
        if self.head_learning_rate is not None:
            fresh = [part for part in parts if getattr(part, "fresh", False)]
            own = (each for part in fresh for each in part.parameters())
            _set_rate(optimizer, own, self.head_learning_rate)
        for part in parts:
            rate = getattr(part, "learning_rate", None)
            if isinstance(rate, float):
                _set_rate(optimizer, part.parameters(), rate, weight_decay=0.0)
        return optimizer


def build_trainer(
    model: EarlyExitModel,
    settings: TrainRecipe,
    scratch: Path,
    train: Rows,
    calibration: Rows,
    encoder: TextEncoder,
    judge: str = "mean",
) -> OrderedTrainer:
    """A trainer that evaluates, saves and compares checkpoints after every epoch.

    Args:
        judge: what chooses the best checkpoint: the accuracy of all exits (`mean`), that of the
            `last`, or the `loss`; see `de3bert.methods.Phase`.
    """
    trainer = OrderedTrainer(
        model=model,
        args=_arguments(settings, scratch, len(train), BEST[judge]),
        train_dataset=train,
        eval_dataset=calibration,
        data_collator=functools.partial(collate, encoder),
        compute_metrics=functools.partial(exit_metrics, model.config.exit_layers),
        preprocess_logits_for_metrics=_predictions,  # type: ignore[arg-type]  # gets a tuple
        callbacks=_callbacks(settings),
    )
    trainer.head_learning_rate = settings.head_learning_rate
    for name in ("PrinterCallback", "ProgressCallback"):
        for callback in list(trainer.callback_handler.callbacks):
            if type(callback).__name__ == name:
                trainer.remove_callback(callback)
    return trainer


def _arguments(settings: TrainRecipe, scratch: Path, rows: int, best: str) -> TrainingArguments:
    steps_per_epoch = math.ceil(rows / settings.batch_size)
    half, brain = precision(settings)
    return TrainingArguments(
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
        use_cpu=brain and not _accelerated(),  # transformers wants to hear that it is meant
        seed=settings.seed,
        train_sampling_strategy="group_by_length" if settings.group_by_length else "random",
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model=best,
        greater_is_better=best != BEST["loss"],
        logging_strategy="steps",
        logging_steps=max(1, steps_per_epoch // 20),
        report_to=settings.report_to,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        label_names=["labels"],
    )


def _callbacks(settings: TrainRecipe) -> list[TrainerCallback]:
    callbacks: list[TrainerCallback] = []
    if settings.early_stopping:
        callbacks.append(EarlyStoppingCallback(settings.early_stopping))
    if settings.save_steps:
        callbacks.append(SaveEvery(settings.save_steps))
    return callbacks


def precision(settings: TrainRecipe) -> tuple[bool, bool]:
    """(fp16, bf16). `auto` uses what a GPU is good at and stays in fp32 on a CPU."""
    wanted = settings.mixed_precision
    if wanted == "auto" and torch.cuda.is_available():
        wanted = "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    if wanted == "fp16" and not _accelerated():
        raise UsageError(
            "mixed_precision is fp16, which needs a GPU, and none is available. A CPU trains in "
            'bfloat16 or in full precision: set it to "bf16" or "no".'
        )
    return wanted == "fp16", wanted == "bf16"


def _accelerated() -> bool:
    return torch.accelerator.is_available()


def _predictions(outputs: tuple[torch.Tensor, ...], labels: torch.Tensor) -> torch.Tensor:
    """Only the exits' predictions are gathered, (rows, exits), or (rows, words, exits).

    Rows have to stay rows, also of a tagger: the Trainer counts them.
    """
    answers = outputs[1].argmax(-1)
    if labels.ndim == 1:
        return answers
    rows = labels.new_full((*labels.shape, answers.shape[-1]), NO_LABEL)
    rows[labels != NO_LABEL] = answers
    return rows


def exit_metrics(layers: list[int], result: EvalPrediction) -> dict[str, float]:
    """Accuracy of every exit, their mean and the last: one of these chooses the checkpoint."""
    labels, answers = np.asarray(result.label_ids), np.asarray(result.predictions)
    if labels.ndim == 2:  # words, some rows of which are only padding
        labels, answers = labels[labels != NO_LABEL], answers[labels != NO_LABEL]
    right = answers == labels[:, None]
    per_exit = {f"accuracy_layer_{m}": float(right[:, i].mean()) for i, m in enumerate(layers)}
    return {
        BEST["mean"]: float(right.mean()),
        BEST["last"]: float(right[:, -1].mean()),
        **per_exit,
    }


def _set_rate(
    optimizer: torch.optim.Optimizer,
    parameters: Iterable[torch.nn.Parameter],
    rate: float,
    **changed: float,
) -> None:
    """Moves parameters to groups of their own, which keep everything else of the old ones."""
    names = {id(parameter) for parameter in parameters}
    for group in list(optimizer.param_groups):
        own = [p for p in group["params"] if id(p) in names]
        if own:
            group["params"] = [p for p in group["params"] if id(p) not in names]
            settings = {key: value for key, value in group.items() if key != "params"}
            optimizer.add_param_group({**settings, "params": own, "lr": rate, **changed})
