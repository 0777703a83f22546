"""Losses on the states of all tokens of a text with hidden words (DistilBERT, PD-BERT)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.objective import needs
from de3bert.objective.divergence import softened_kl
from de3bert.objective.objective import LOSSES, ExitBatch, StatefulLoss

__all__ = ["IGNORED", "MaskedWords", "TokenDirections", "WordKnowledge"]

IGNORED = -100  # in place of a word that is not to be guessed
WORDS = f"the words to guess, (rows, tokens), {IGNORED} where there is none"
PRESENT = "0 where there is padding, (rows, tokens)"


class TokenLoss(StatefulLoss):
    """The base of losses that read the last states of all tokens."""

    reads_tokens = True
    name: str

    def tokens(self, batch: ExitBatch) -> Tensor:
        """In float32, (rows, tokens, hidden)."""
        if batch.tokens is None:
            raise UsageError(
                f'The loss "{self.name}" needs the states of all tokens, but the batch has none. '
                "Give them as ExitBatch(tokens=...), (rows, tokens, hidden)."
            )
        return batch.tokens.float()


@LOSSES.register("masked_words")
class MaskedWords(TokenLoss):
    """- log p(word | the text without it), mean over the words to guess, ().

    Attributes:
        head: states to logits, (tokens, hidden) -> (tokens, words). It is there for a phase of
            training alone, and learns along.
    """

    name = "masked_words"
    head: nn.Module | None

    def __init__(self, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__(exits, options)
        self.head = None

    def forward(self, batch: ExitBatch) -> Tensor:
        words = needs.extra(batch, "words", self.name, WORDS)
        asked = words != IGNORED
        logits = _present(self.head, self.name)(self.tokens(batch)[asked]).float()
        total = functional.cross_entropy(logits, words[asked], reduction="sum")
        return total / asked.sum().clamp_min(1)


@LOSSES.register("word_knowledge")
class WordKnowledge(TokenLoss):
    """T^2 KL_T(teacher || student) over the whole vocabulary, mean over tokens, ().

    Options: `temperature`, T, 2 by default; `soft_words`, the tokens it is taken at: `all` of the
    text, as in the authors' runs, or only the `masked` ones, which costs a sixth.

    Attributes:
        heads: of the student and of the teacher, for a phase of training alone. In a tuple: the
            student's head is the other loss's, and counted there.
    """

    name = "word_knowledge"

    def __init__(self, exits: int, options: Mapping[str, OptionValue]) -> None:
        super().__init__(exits, options)
        self.temperature = needs.number(options, "temperature", 2.0, positive=True)
        self.at = needs.word(options, "soft_words", ("all", "masked"))
        self.heads: tuple[nn.Module | None, nn.Module | None] = None, None

    def forward(self, batch: ExitBatch) -> Tensor:
        student, teacher = (_present(head, self.name) for head in self.heads)
        chosen = self._chosen(batch)
        theirs = _teacher_tokens(batch, self.name)
        divergence = softened_kl(
            teacher(theirs[chosen]).detach(), student(self.tokens(batch)[chosen]), self.temperature
        )
        return self.temperature**2 * divergence.sum() / chosen.sum().clamp_min(1)

    def _chosen(self, batch: ExitBatch) -> Tensor:
        """(rows, tokens) bool"""
        if self.at == "masked":
            return needs.extra(batch, "words", self.name, WORDS) != IGNORED
        return needs.extra(batch, "present", self.name, PRESENT).bool()


@LOSSES.register("token_directions")
class TokenDirections(TokenLoss):
    """1 - cos(h_s, h_t) of the last states of student and teacher, mean over tokens, ()."""

    name = "token_directions"

    def forward(self, batch: ExitBatch) -> Tensor:
        present = needs.extra(batch, "present", self.name, PRESENT).bool()
        ours, theirs = self.tokens(batch)[present], _teacher_tokens(batch, self.name)[present]
        cosines = functional.cosine_similarity(ours, theirs, dim=-1)
        return (1 - cosines).sum() / present.sum().clamp_min(1)


def _teacher_tokens(batch: ExitBatch, loss: str) -> Tensor:
    meaning = "the teacher's last states, (rows, tokens, hidden)"
    return needs.extra(batch, "teacher_tokens", loss, meaning).detach().float()


def _present(head: nn.Module | None, loss: str) -> nn.Module:
    if head is None:
        raise UsageError(
            f'The loss "{loss}" needs a masked-language-modelling head, which a phase with the '
            'hook "masked_words" or "masked_teacher" attaches; there is none now.'
        )
    return head
