"""Heads that guess hidden words, taken from pretrained checkpoints or made fresh.

A head belongs to a phase of training, not to a classifier: nothing of it is saved with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers import AutoModelForMaskedLM, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import logging

from de3bert.errors import De3Error
from de3bert.model.pretrained import from_pretrained

__all__ = ["MaskedModel", "WordHead", "fresh_head", "load_masked_model"]


class WordHead(nn.Module):
    """States to logits over all words, (tokens, hidden) -> (tokens, words).

    The last step of such a head multiplies with the encoder's own table of word embeddings. That
    one is held by reference: it is neither saved nor counted a second time.

    Args:
        machine: how logits are computed; its own weights are never read.
        own: name -> weight, for all weights of the machine but the table.
        table: the names under which the machine knows the table; none where it has its own.
        words: the table, (words, width).
    """

    def __init__(
        self, machine: nn.Module, own: Mapping[str, Tensor], table: list[str], words: nn.Parameter
    ) -> None:
        super().__init__()
        self.names, self.table = list(own), table
        self.own = nn.ParameterList(own.values())
        self.lent = machine, words  # in a tuple, which keeps them out of the module tree

    @classmethod
    def of(cls, machine: nn.Module, words: nn.Parameter) -> WordHead:
        """A head with the machine's weights, of which one may be the table."""
        weights = dict(machine.named_parameters())
        table = [name for name, weight in weights.items() if weight is words]
        own = {name: weight for name, weight in weights.items() if weight is not words}
        return cls(machine, own, table, words)

    def copy(self, words: nn.Parameter) -> WordHead:
        """The same head with weights of its own, on another table."""
        own = [weight.detach().clone() for weight in self.own]
        return WordHead(self.lent[0], dict(zip(self.names, own, strict=True)), self.table, words)

    def forward(self, states: Tensor) -> Tensor:
        machine, words = self.lent
        weights = dict(zip(self.names, self.own, strict=True)) | dict.fromkeys(self.table, words)
        return functional_call(machine, weights, (states,))


@dataclass
class MaskedModel:
    """A pretrained encoder and its own head that guesses hidden words."""

    encoder: PreTrainedModel
    head: WordHead


class Given(nn.Module):
    """Stands where the encoder was and answers with the states it was given."""

    states: Tensor | None = None

    def forward(self, *arguments: Any, **keywords: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.states)  # type: ignore[arg-type]


class HeadOf(nn.Module):
    """The head of any masked language model: the model itself, its encoder taken out."""

    def __init__(self, masked: PreTrainedModel) -> None:
        super().__init__()
        self.given = Given()
        setattr(masked, masked.base_model_prefix, self.given)
        self.masked = masked

    def forward(self, states: Tensor) -> Tensor:
        self.given.states = states.unsqueeze(0)
        try:
            return self.masked(input_ids=None).logits.squeeze(0)
        finally:
            self.given.states = None


def fresh_head(hidden_size: int, words: nn.Parameter) -> WordHead:
    """A new head of BERT's form on a table: linear, gelu, norm, words."""
    count, width = words.shape
    dense, decoder = nn.Linear(hidden_size, width), nn.Linear(width, count)
    nn.init.normal_(dense.weight, std=0.02)
    nn.init.zeros_(dense.bias)
    nn.init.zeros_(decoder.bias)
    decoder.weight = words
    return WordHead.of(nn.Sequential(dense, nn.GELU(), nn.LayerNorm(width), decoder), words)


def load_masked_model(source: str, *, trust_remote_code: bool = False) -> MaskedModel | None:
    """Encoder and head of a checkpoint; None where it has no trained head."""
    try:
        with _quiet():
            masked, info = from_pretrained(
                AutoModelForMaskedLM,
                source,
                trust_remote_code=trust_remote_code,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except ValueError:  # the family has no such head
        return None
    prefix = masked.base_model_prefix + "."
    if any(not name.startswith(prefix) for name in info["missing_keys"]):
        return None
    return _split(masked.eval())


@torch.no_grad()
def _split(masked: PreTrainedModel) -> MaskedModel:
    """Takes encoder and head apart and proves, on a toy batch, that together they do the same."""
    ids = torch.tensor([[5, 6, 7, 8], [8, 7, 6, 5]])
    expected = masked(input_ids=ids).logits
    encoder = getattr(masked, masked.base_model_prefix)
    words = encoder.get_input_embeddings().weight
    head = WordHead.of(HeadOf(masked), words)
    try:
        found = head(encoder(input_ids=ids)[0].flatten(0, 1))
    except Exception as error:  # whatever a forward raises when its encoder is gone
        raise _refusal(masked, str(error)) from error
    if not torch.allclose(found, expected.flatten(0, 1), atol=1e-4, rtol=1e-3):
        raise _refusal(masked, "it reads more than the last states")
    return MaskedModel(encoder, head)


def _refusal(masked: PreTrainedModel, reason: str) -> De3Error:
    return De3Error(
        f"The masked-word head of {type(masked).__name__} does not run on its own: {reason}. "
        "Use the methods pkd or theseus with this backbone."
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning that a head is missing: we ask exactly that."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
