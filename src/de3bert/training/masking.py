"""Text with words taken out, for phases that learn to guess them (DistilBERT, PD-BERT)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.model.tokens import TextEncoder
from de3bert.model.word_head import MaskedModel, fresh_head, load_masked_model
from de3bert.objective.masked_words import IGNORED, MaskedWords, WordKnowledge
from de3bert.training.batch_hook import PerPass
from de3bert.training.hook import HOOKS

__all__ = ["MaskedTeacher", "MaskedText", "Masking"]

ASKED = 0.15  # share of the words that are to be guessed
HIDDEN, CHANGED = 0.8, 0.1  # of these: hidden, replaced by any word; the rest stays in sight


@dataclass(frozen=True)
class Masking:
    """Takes words out of a batch: 15 % are asked for, of these 80 % hidden, 10 % changed.

    `DataCollatorForLanguageModeling` of transformers does so too (a test holds the shares equal).
    Its generator goes on from batch to batch and is in no checkpoint, so that a training that was
    stopped would draw other words than one that was not; ours follows from seed and step.

    Args:
        mask: the id that stands for a hidden word.
        words: size of the vocabulary.
        special: ids that are never asked for.
    """

    mask: int
    words: int
    special: tuple[int, ...]

    @classmethod
    def of(cls, encoder: TextEncoder) -> Masking:
        """The masking of a tokenizer, if that has a mask."""
        tokenizer = encoder.tokenizer
        if tokenizer.mask_token_id is None:
            raise UsageError(
                "This method uses masked language modelling, and the backbone's tokenizer has no "
                "mask token. Use the methods pkd or theseus, or another backbone."
            )
        return cls(int(tokenizer.mask_token_id), len(tokenizer), tuple(tokenizer.all_special_ids))

    def __call__(
        self, ids: Tensor, present: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """The ids to read and the words to guess, `IGNORED` where none is; (rows, tokens) each.

        Args:
            present: (rows, tokens), 0 where there is padding.
            generator: on the CPU, so that the draws do not depend on the device.
        """
        draws = torch.rand((2, *ids.shape), generator=generator)
        others = torch.randint(self.words, ids.shape, generator=generator).to(ids.device)
        chance, fate = draws.to(ids.device)
        special = torch.isin(ids, torch.tensor(self.special, device=ids.device))
        asked = (chance < ASKED) & present.bool() & ~special
        seen = torch.where(asked & (fate < HIDDEN), self.mask, ids)
        changed = asked & (fate >= HIDDEN) & (fate < HIDDEN + CHANGED)
        return torch.where(changed, others, seen), torch.where(asked, ids, IGNORED)


@HOOKS.register("masked_words")
class MaskedText(PerPass):
    """Masks every batch at random and gives the loss a masked-language-modelling head.

    `extras["words"]` are the words to guess, `extras["present"]` is 0 where there is padding. The
    head begins as the backbone's own where it has one, else fresh. It is there for the phase
    alone: the model that is saved knows nothing of it.
    """

    salt = 5

    def check(self) -> None:
        Masking.of(self.context.encoder)

    def before(self) -> None:
        super().before()
        self.masking = Masking.of(self.context.encoder)
        self.lend(self.pretrained())

    def pretrained(self) -> MaskedModel | None:
        """The backbone with its head that guesses words, where it has one."""
        context = self.context
        return load_masked_model(context.backbone, trust_remote_code=context.trust_remote_code)

    def lend(self, pretrained: MaskedModel | None) -> None:
        model, words = self.context.model, self._table()
        if pretrained is not None:
            head = pretrained.head.copy(words)
        else:
            with torch.random.fork_rng():  # the same head, whatever was drawn before
                torch.manual_seed(self.context.seed)
                head = fresh_head(model.config.hidden_size, words)
        self.loss.head = head.to(model.device)

    def before_pass(self, given: dict[str, Any], generator: torch.Generator) -> None:
        ids = given["input_ids"]
        present = given.get("attention_mask")
        present = torch.ones_like(ids) if present is None else present
        given["input_ids"], words = self.masking(ids, present, generator)
        given["extras"] = {**(given.get("extras") or {}), "words": words, "present": present}

    def after(self) -> None:
        super().after()
        self.loss.head = None

    @property
    def loss(self) -> MaskedWords:
        part = self.context.model.objective.stateful["masked_words"]
        assert isinstance(part, MaskedWords)
        return part

    def _table(self) -> nn.Parameter:
        table = self.context.model.get_input_embeddings().weight
        assert isinstance(table, nn.Parameter)
        return table


@HOOKS.register("masked_teacher")
class MaskedTeacher(MaskedText):
    """The same, and the whole pretrained backbone reads every masked batch along (DistilBERT).

    `extras["teacher_tokens"]` are its last states, (rows, tokens, hidden).
    """

    def check(self) -> None:
        super().check()
        if self.pretrained() is None:
            raise UsageError(
                f"The backbone {self.context.backbone} has no trained masked-language-modelling "
                "head, and this method learns from one. Sentence embedders are published without "
                "it. Take the encoder they were made from (such as google-bert/bert-base-uncased), "
                "or one of the methods pd, pkd and theseus."
            )

    def lend(self, pretrained: MaskedModel | None) -> None:
        super().lend(pretrained)
        assert pretrained is not None  # see `check`
        self.teacher = pretrained.encoder.requires_grad_(False)
        self.accepted = set(inspect.signature(self.teacher.forward).parameters)
        self.teachers_head = pretrained.head.requires_grad_(False)
        self.knowledge.heads = self.loss.head, self.teachers_head

    def before_pass(self, given: dict[str, Any], generator: torch.Generator) -> None:
        super().before_pass(given, generator)
        device = given["input_ids"].device
        read = {name: value for name, value in given.items() if name in self.accepted}
        self.teachers_head.to(device)
        with torch.no_grad():
            given["extras"]["teacher_tokens"] = self.teacher.to(device)(**read)[0]

    def after(self) -> None:
        super().after()
        self.knowledge.heads = None, None

    @property
    def knowledge(self) -> WordKnowledge:
        part = self.context.model.objective.stateful["word_knowledge"]
        assert isinstance(part, WordKnowledge)
        return part
