"""A method's phases on toy rows, step by step: what the schedule does, without the Trainer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tests.conftest import TINY_WORDS
from tests.fixtures_trained import toy_rows
from tests.tagged import TAGS, toy_sentences
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from de3bert.methods import METHODS, Method, Phase
from de3bert.model import EarlyExitModel as Model
from de3bert.model.groups import train_only
from de3bert.model.tokens import TextEncoder
from de3bert.model.word_encoder import encoder_of
from de3bert.objective import Clock
from de3bert.training.hooks import HOOKS, Hook, PhaseContext
from de3bert.training.rows import Rows, collate

LABELS = ["neg", "pos"]
LENGTH = 24


@dataclass
class Running:
    """A phase that has begun."""

    model: Model
    hook: Hook | None

    def at(self, clock: Clock) -> None:
        """Tells the loss and the hook where the phase stands."""
        self.model.objective.clock = clock
        if self.hook is not None:
            self.hook.step(clock)


@dataclass
class Toy:
    """A fresh model of a method, with toy rows to train on."""

    method: Method
    context: PhaseContext

    @property
    def model(self) -> Model:
        return self.context.model

    def batch(self, first: int = 0, size: int = 16) -> dict[str, Tensor]:
        """Some rows with their labels and extras, padded; the rows go round."""
        rows = self.context.rows
        chosen = [rows[number % len(rows)] for number in range(first, first + size)]
        return collate(self.context.encoder, chosen)

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Running]:
        """The model as it is while the phase runs, in training mode."""
        context = self.context
        context.rows.extras = {}
        context.model.objective.enter(phase.terms)
        train_only(context.model, phase.trains)
        hook = None if phase.hook is None else HOOKS[phase.hook](context)
        if hook is not None:
            hook.before()
        context.model.train()
        yield Running(context.model, hook)
        if hook is not None:
            hook.after()
        train_only(context.model, ())


def toy(
    method: str,
    backbone: Path,
    tokenizer: PreTrainedTokenizerFast,
    *,
    teacher: Path | None = None,
    pooling: str | None = None,
    rows: int = 48,
    **options: float | str,
) -> Toy:
    """Always the same model and rows. A method for words gets sentences, the others texts."""
    declared = METHODS[method]
    words = declared.task == "token-classification"
    torch.manual_seed(0)
    model = Model.from_backbone(
        str(backbone),
        labels=TAGS if words else LABELS,
        method=method,
        pooling=pooling,
        small_backbone=small_encoder() if declared.cascade == "own" else None,
        **options,
    )
    encoder = encoder_of(declared.task, tokenizer, LENGTH)
    made = _sentences(encoder, rows) if words else _texts(encoder, rows)
    resolved = dict(model.config.method_options or {})
    context = PhaseContext(model, made, made, encoder, resolved, str(backbone), teacher, 3)
    return Toy(declared, context)


def small_encoder() -> BertModel:
    """A small encoder for the same tokens, narrower than the backbone; its weights are fresh."""
    config = BertConfig(
        vocab_size=len(TINY_WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64,
    )  # fmt: skip
    return BertModel(config)


def without_dropout(model: Model) -> Model:
    """In training, but with no dropout anywhere: two passes give the same loss."""
    model.eval()
    model.training = model.encoder.training = True
    return model


def everything(model: Model) -> dict[str, Tensor]:
    """Copies of all parameters and buffers by name, saved or not."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in named}


def _texts(encoder: TextEncoder, rows: int) -> Rows:
    made = toy_rows(rows, 9)
    labels = np.array([LABELS.index(label) for _, label in made])
    return Rows(encoder([text for text, _ in made]), labels)


def _sentences(encoder: TextEncoder, rows: int) -> Rows:
    made = toy_sentences(rows, 9)
    labels = [np.array([TAGS.index(tag) for tag in tags]) for _, tags in made]
    return Rows(encoder([words for words, _ in made]), labels)
