"""Which rows are hard for a small model (CascadeBERT).

A model knows the rows it was trained on too well to say which are hard. So the rows are cut into
folds, and each fold is judged by a small model that was trained on the others, with a seed of its
own: head, order and dropout differ. That takes folds - 1 passes over the rows for every epoch of a
judge. Judges begin with the pre-trained small model, as the cascade does, and are thrown away.
"""

from __future__ import annotations

import copy
import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from de3bert.files import read_json, write_json
from de3bert.model import EarlyExitModel
from de3bert.model.building import leave_weights
from de3bert.model.cascade import Cascade
from de3bert.model.config import EarlyExitConfig
from de3bert.model.early_exit import MODELS
from de3bert.model.pooling import OwnPooler
from de3bert.training.hook import HOOKS, Hook
from de3bert.training.inference import exit_logits
from de3bert.training.recipe import LAST_SEED
from de3bert.training.rows import Rows
from de3bert.training.run_trainer import run_trainer
from de3bert.training.trainer import build_trainer

__all__ = ["Difficulty", "folds_of", "small_alone"]

LOG = logging.getLogger(__name__)


@HOOKS.register("difficulty")
class Difficulty(Hook):
    """`extras["difficult"]`: does a small model that has not seen the row get it wrong?

    Options: `folds` (3), `difficulty_epochs` (0.5, as a share of the recipe's), and `difficulty`,
    the weight of what reads it: at 0 nothing is judged. What a fold gave is kept in the phase's
    folder, so that a training that was stopped does not judge it again.
    """

    def before(self) -> None:
        rows, options = self.context.rows, self.context.options
        difficult = torch.zeros(len(rows), dtype=torch.bool)
        rows.extras["difficult"] = difficult
        if float(options["difficulty"]) == 0:
            return
        folds = folds_of(len(rows), int(float(options["folds"])), self.context.seed)
        with tempfile.TemporaryDirectory() as spare:
            place = self.context.place or Path(spare)
            for number, own in enumerate(folds, start=1):
                difficult[own] = self._judged(own, number, len(folds), place)
        LOG.info("%d of %d rows are hard", int(difficult.sum()), len(rows))

    def _judged(self, own: Tensor, number: int, of: int, place: Path) -> Tensor:
        """Which rows of a fold are hard, (rows of the fold,)."""
        kept = place / f"difficult-{number}.json"
        if not kept.exists():
            write_json(kept, self._judge(own, number, of, place / f"judge-{number}"))
        record = read_json(kept)
        self.steps += record["steps"]
        self.seconds += record["seconds"]
        return torch.tensor(record["difficult"])

    def _judge(self, own: Tensor, number: int, of: int, scratch: Path) -> dict[str, object]:
        """Trains a judge on the other folds and asks it about this one."""
        context = self.context
        others = torch.ones(len(context.rows), dtype=torch.bool)
        others[own] = False
        settings = context.settings.model_copy(
            update={
                "epochs": context.settings.epochs * float(context.options["difficulty_epochs"]),
                "seed": (context.seed + number) % LAST_SEED,
            }
        )
        judge = small_alone(context.model, settings.seed)
        seen = context.rows.only(others.nonzero().flatten().tolist())
        trainer = build_trainer(
            judge, settings, scratch, seen, context.held, context.encoder, "last"
        )
        label = f"judge {number} of {of}"
        trainer.phase = label
        seconds = run_trainer(trainer, scratch, label, context.progress)
        trainer.check_weights()
        fold = context.rows.only(own.tolist())
        wrong = _wrong(judge, fold, exit_logits(judge, fold, context.encoder))
        shutil.rmtree(scratch, ignore_errors=True)
        return {
            "difficult": wrong.tolist(), "steps": trainer.state.global_step, "seconds": seconds,
        }  # fmt: skip


def folds_of(rows: int, folds: int, seed: int) -> Sequence[Tensor]:
    """The numbers of all rows in parts of equal size, drawn at random, each part rising."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    parts = min(folds, rows)
    return [order[part::parts].sort().values for part in range(parts)]


def small_alone(model: EarlyExitModel, seed: int) -> EarlyExitModel:
    """A copy of the small model of a cascade as a model of its own, with a fresh head."""
    cascade = cast(Cascade, cast(nn.Module, model.encoder))
    encoder = copy.deepcopy(cascade.small)
    config = EarlyExitConfig(
        backbone_config=copy.deepcopy(encoder.backbone.config),
        layout=encoder.layout.to_json(),
        method="full",
        pooling=model.config.pooling,
        prototypes="none",
        exit_layers=[encoder.depth],
        max_length=model.config.max_length,
        id2label=model.config.id2label,
        label2id=model.config.label2id,
    )
    leave_weights(encoder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        single = MODELS[config.task](config, encoder)
    if isinstance(single.pooling, OwnPooler) and isinstance(model.pooling, OwnPooler):
        single.pooling.fresh = model.pooling.fresh
        _take_over(*(cast(nn.Linear, each.dense[0]) for each in (single.pooling, model.pooling)))
    return single


@torch.no_grad()
def _take_over(pooler: nn.Linear, wide: nn.Linear) -> None:
    """The part of a pooler that reads the small model's numbers, and none of zeros behind them."""
    width = pooler.in_features
    pooler.weight.copy_(wide.weight[:width, :width])
    pooler.bias.copy_(wide.bias[:width])


def _wrong(judge: EarlyExitModel, rows: Rows, logits: Tensor) -> Tensor:
    """Does its last exit say something else than the label? (rows,)"""
    return logits[:, -1].argmax(-1) != rows.unit_labels()
