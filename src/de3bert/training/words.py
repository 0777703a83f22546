"""From a recipe's data section to sentences of words for training and calibration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from de3bert.data.labels import LabelSet
from de3bert.data.tokens import Encoded
from de3bert.data.words import WordTable, read_words
from de3bert.errors import UsageError
from de3bert.exits.word_curve import check_metric
from de3bert.methods import METHODS, Method
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.tokens import TextEncoder
from de3bert.training.recipe import DataRecipe, Recipe
from de3bert.training.rows import Rows, collate

__all__ = ["WordRows", "WordSplits", "check_task", "read_word_splits", "word_logits"]

BATCH = 64


def check_task(recipe: Recipe, method: Method) -> None:
    """Methods for words take words, the others texts; what does not fit is said at once."""
    words = method.token_exits == "words"
    if recipe.data.task == "words" and not words:
        fitting = ", ".join(name for name in METHODS if METHODS[name].token_exits == "words")
        raise UsageError(
            f"Method {method.name} classifies texts, but the data are words with tags "
            f'(task = "words"). Methods for words: {fitting}.'
        )
    if words and recipe.data.task != "words":
        raise UsageError(
            f"Method {method.name} tags words, but the data are texts. Set data.task to words "
            "(--task words) for a file of words and tags, or use a method for texts such as de3."
        )
    if words and (recipe.data.text_pair or recipe.data.unlabelled):
        raise UsageError("A model of words has neither text pairs nor unlabelled text.")
    if words and recipe.train.refresh_prototypes:
        raise UsageError("refresh_prototypes is for texts; leave it out for a model of words.")


@dataclass(frozen=True)
class WordSplits:
    """The sentences of a training, and the numbers of their tags beside them."""

    labels: LabelSet
    train: WordTable
    train_labels: list[NDArray[np.int64]]  # (words,) each
    calibration: WordTable
    calibration_labels: list[NDArray[np.int64]]

    def fingerprint(self) -> str:
        """Names the sentences, so that a training never goes on with others."""
        names = (self.train.sha256, self.calibration.sha256, *self.labels.names)
        text = "|".join(str(name) for name in (len(self.train), len(self.calibration), *names))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class WordRows(Rows):
    """Sentences as token rows; the labels of one are a list, cut where the sentence was cut."""

    def __init__(self, encoded: Encoded, labels: Sequence[NDArray[np.int64]]) -> None:
        self.lengths = encoded.lengths
        self.extras = {}
        self.numbers: list[list[int]] = [
            numbers.tolist()[: max(row["word_ids"])]
            for row, numbers in zip(encoded.rows, labels, strict=True)
        ]
        self.rows = [
            {**row, "labels": numbers}
            for row, numbers in zip(encoded.rows, self.numbers, strict=True)
        ]

    def tags(self) -> Tensor:
        """The tags of all words, sentence by sentence, (words,)."""
        return torch.tensor([tag for numbers in self.numbers for tag in numbers])


def read_word_splits(data: DataRecipe, seed: int) -> WordSplits:
    """Reads train and calibration sentences; without a calibration file a share is held."""
    train = _read(data, data.train, data.train_split, data.limit)
    labels = LabelSet.from_values(
        (tag for tags in train.known_tags for tag in tags), names=train.label_names
    )
    check_metric(data.metric, labels.names)
    numbers = _numbers(labels, train)
    if data.calibration is not None:
        calibration = _read(data, data.calibration, data.calibration_split)
        return WordSplits(labels, train, numbers, calibration, _numbers(labels, calibration))
    kept, held = _split(numbers, data.calibration_share, seed)
    return WordSplits(
        labels,
        train.take(kept),
        [numbers[index] for index in kept],
        train.take(held),
        [numbers[index] for index in held],
    )


@torch.no_grad()
def word_logits(
    model: EarlyExitForSequenceClassification, rows: Rows, encoder: TextEncoder
) -> list[Tensor]:
    """Logits of all exits for every sentence, (words, exits, tags) each."""
    was_training = model.training
    model.eval()
    order = sorted(range(len(rows)), key=rows.lengths.__getitem__)
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    for start in range(0, len(rows), BATCH):
        chosen = order[start : start + BATCH]
        batch = collate(encoder, [rows[index] for index in chosen])
        placed = {k: v.to(model.device) for k, v in batch.items() if k not in ("labels", "extras")}
        output = model(**placed)
        assert isinstance(output, EarlyExitOutput)
        assert output.exit_logits is not None
        counts = placed["word_ids"].amax(1).tolist()
        parts = output.exit_logits.float().cpu().split(counts)
        for index, part in zip(chosen, parts, strict=True):
            found[index] = part
    model.train(was_training)
    return found


def _read(data: DataRecipe, source: str, split: str | None, limit: int | None = None) -> WordTable:
    config = data.config if split is not None or not Path(source).is_file() else None
    return read_words(
        source, words=data.text, tags=data.label, config=config, split=split, limit=limit,
        label_names=data.numbered_names,
    )  # fmt: skip


def _numbers(labels: LabelSet, table: WordTable) -> list[NDArray[np.int64]]:
    tags = table.known_tags
    flat = labels.encode((tag for row in tags for tag in row), names=table.label_names)
    return np.split(flat, np.cumsum([len(sentence) for sentence in tags])[:-1])


def _split(
    numbers: Sequence[NDArray[np.int64]], share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Sentences to train on and sentences to hold; a tag is never held alone."""
    rows = len(numbers)
    wanted = max(1, round(share * rows))
    if wanted >= rows:
        raise UsageError(f"{rows} sentences are too few to hold {share:g} of them for calibration.")
    mixed = np.random.default_rng(seed).permutation(rows).tolist()
    held, kept = mixed[:wanted], mixed[wanted:]
    trained = {tag for index in kept for tag in numbers[index].tolist()}
    for index in list(held):
        if not trained.issuperset(numbers[index].tolist()) and len(held) > 1:
            held.remove(index)
            kept.append(index)
            trained.update(numbers[index].tolist())
    return sorted(kept), sorted(held)
