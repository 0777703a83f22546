"""Taggers: the words of a batch become its rows.

An exit reads the state of a word's first piece. The words of all sentences of a batch, one behind
the other, are what texts are to a text classifier: logits are (words, exits, tags), and heads,
prototypes, losses and signals do not know the difference.

`word_ids` (rows, tokens) says which word of its sentence each piece belongs to, counted from 1; 0
is a special token or padding. Without it every token is a word of its own, as for a token
classifier of transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from de3bert.errors import De3Error, UsageError
from de3bert.methods import Method
from de3bert.model.word_encoder import NO_LABEL

__all__ = [
    "WordInputs",
    "as_words",
    "check_pooling",
    "first_pieces",
    "last_layers",
    "word_numbers",
    "word_states",
]


class WordInputs(NamedTuple):
    """What a batch of sentences is for the exits."""

    word_ids: Tensor  # (rows, tokens)
    labels: Tensor | None  # (labelled words,)
    labelled: Tensor | None  # (words,), which words the labels are of; None: all
    token_layers: Tensor | None  # (rows, tokens), the last layer that changes each piece
    extras: dict[str, Tensor]  # for losses: `reached` (words,), how many exits a word gets to


def as_words(
    input_ids: Tensor,
    word_ids: Tensor | None,
    labels: Tensor | None,
    halts: Tensor | None,
    exit_layers: Sequence[int],
) -> WordInputs:
    """Labels as a flat list of words, and where words halt as the last layer of every piece.

    Args:
        labels: (rows, most words), `NO_LABEL` behind the last word of a sentence; without
            `word_ids` (rows, tokens), `NO_LABEL` where a token is not to be tagged.
        halts: the exit layer at which each word halts, (rows, at least most words).
    """
    labelled = None
    if word_ids is None:
        word_ids = torch.arange(1, input_ids.shape[1] + 1, device=input_ids.device)
        word_ids = word_ids.expand_as(input_ids)
        labelled = None if labels is None else (labels != NO_LABEL).flatten()
    first = first_pieces(word_ids)
    if labels is not None:
        words = int(first.sum()) if labelled is None else int(labelled.sum())
        fits = labelled is None or labels.shape == input_ids.shape
        labels = labels[labels != NO_LABEL]
        if len(labels) != words or not fits:
            raise De3Error(f"{len(labels)} labels do not fit a batch of {words} words.")
    if halts is None:
        return WordInputs(word_ids, labels, labelled, None, {})
    layers = last_layers(word_ids, halts, exit_layers[-1])
    known = torch.tensor(exit_layers, device=halts.device)
    reached = (known <= layers[first][:, None]).sum(1)
    return WordInputs(word_ids, labels, labelled, layers, {"reached": reached})


def first_pieces(word_ids: Tensor) -> Tensor:
    """True at the first piece of every word, (rows, tokens)."""
    before = torch.nn.functional.pad(word_ids[:, :-1], (1, 0))
    return (word_ids > 0) & (word_ids != before)


def word_states(hidden: Tensor, word_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Every word as a row of one token, sentence by sentence: states and mask.

    (rows, tokens, hidden) -> (words, 1, hidden), (words, 1)
    """
    states = hidden[first_pieces(word_ids)].unsqueeze(1)
    return states, word_ids.new_ones(states.shape[:2])


def word_numbers(word_ids: Tensor, rows: Tensor) -> Tensor:
    """The numbers, in the whole batch, of the words of some rows, in the order of these rows."""
    counts = first_pieces(word_ids).sum(1)
    starts = counts.cumsum(0) - counts
    found = [torch.arange(int(counts[row])) + int(starts[row]) for row in rows.tolist()]
    return torch.cat(found).to(word_ids.device)


def last_layers(word_ids: Tensor, halts: Tensor, depth: int) -> Tensor:
    """The last layer that changes each piece: its word's; special tokens are never halted.

    (rows, tokens), (rows, words) -> (rows, tokens)
    """
    own = halts.gather(1, (word_ids - 1).clamp_min(0))
    return torch.where(word_ids > 0, own, depth)


def check_pooling(method: Method, pooling: str | None) -> None:
    """Words are read unchanged: there is nothing to pool."""
    if method.task == "token-classification" and pooling not in (None, "cls"):
        raise UsageError(
            f"Method {method.name} reads the states of single words; leave pooling out, "
            f'got "{pooling}".'
        )
