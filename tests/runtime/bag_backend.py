"""A custom back end: a bag of words in numpy, whose layers add up scores of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from de3bert.data.tokens import Encoded
from de3bert.files import read_json
from de3bert.runtime.backends import BACKENDS, BackendPart
from de3bert.runtime.load import read_info


class BagBackend:
    has_prototypes = has_router = False
    prototypes_unset = ()

    def __init__(self, folder: Path) -> None:
        self.info = read_info(folder)
        self.exit_layers, self.classes = self.info.exit_layers, len(self.info.label_names)
        self.words = read_json(folder / "words.json")  # word -> its number; 0 is for all others
        self.scores = load_file(folder / "model.safetensors")["scores"]  # (words, layers, classes)

    def encoder(self, texts):
        limit = self.info.max_length
        rows = [[self.words.get(word, 0) for word in text.lower().split()] for text in texts]
        cut = [len(row) > limit for row in rows]
        return Encoded([{"input_ids": row[:limit]} for row in rows], cut)

    def size(self):
        return {"words": len(self.words)}

    def start(self, rows):  # the state is what every layer will say of a row: no padding needed
        return np.stack([self.scores[row["input_ids"]].sum(axis=0) for row in rows])

    def advance(self, state, layer, *, read):
        return state, state[:, :layer].sum(axis=1) if read else None

    def keep(self, state, keep):
        return state[keep]

    def distances(self, state, layer):
        raise NotImplementedError("never asked for: has_prototypes and has_router are False")

    certainty = distances


def open_bag(source, opening):
    return BagBackend(Path(source))


BACKENDS.add("bag", BackendPart(opens=frozenset({"model folder"}), open=open_bag))
