"""Made-up traces of words."""

from __future__ import annotations

import numpy as np

from de3bert.exits import Trace

NAMES = ("B-X", "I-X", "O")


def word_trace(seed: int = 0, sentences: int = 12, exits: int = 4, ties: bool = False) -> Trace:
    """Random logits that grow surer with depth; `ties` makes many words equally sure."""
    chance = np.random.default_rng(seed)
    counts = chance.integers(1, 7, sentences)
    words = int(counts.sum())
    logits = chance.normal(size=(words, exits, 3)) * np.arange(1, exits + 1)[:, None]
    if ties:
        logits = np.round(logits)
    return Trace(
        logits=logits.astype(np.float32),
        distances=chance.uniform(0.01, 1.5, (words, exits - 1, 3)).astype(np.float32),
        labels=chance.integers(0, 3, words),
        tokens=chance.integers(1, 4, words),
        exit_layers=tuple(range(2, 2 * exits + 1, 2)),
        label_names=NAMES,
        sentence=np.repeat(np.arange(sentences), counts),
    )
