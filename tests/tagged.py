"""Toy sentences whose tags depend on neighbours, and settings that train a model on them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

GOOD = ("good", "great", "fine", "joy", "best")
THINGS = ("film", "movie", "story", "actor", "plot", "scene")
OTHERS = ("the", "a", "was", "is", "it", "and", "but", "so")
TAGS = ["B-ART", "I-ART", "O"]


def toy_sentences(rows: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """`film` is an entity of its own; after a good word it goes on the entity that starts there."""
    chance = random.Random(seed)
    made = []
    for _ in range(rows):
        words: list[str] = []
        tags: list[str] = []
        for _ in range(chance.randint(1, 4)):
            fillers = chance.choices(OTHERS, k=chance.randint(0, 2))
            words += fillers
            tags += ["O"] * len(fillers)
            kind = chance.random()
            if kind < 0.4:
                words += [chance.choice(GOOD), chance.choice(THINGS)]
                tags += ["B-ART", "I-ART"]
            elif kind < 0.7:
                words.append(chance.choice(THINGS))
                tags.append("B-ART")
            else:
                words += [chance.choice(GOOD), chance.choice(OTHERS)]
                tags += ["O", "O"]
        made.append((words, tags))
    return made


def write_jsonl(path: Path, rows: list[tuple[list[str], list[str]]]) -> Path:
    lines = [json.dumps({"tokens": words, "tags": tags}) for words, tags in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_conll(path: Path, rows: list[tuple[list[str], list[str]]]) -> Path:
    blocks = ["\n".join(f"{w} {t}" for w, t in zip(*row, strict=True)) for row in rows]
    path.write_text("\n\n".join(blocks) + "\n")
    return path


def word_recipe(backbone: Path, train: Path, held: Path, method: str, **changes: Any) -> dict:
    return {
        "backbone": str(backbone),
        "method": method,
        "data": {
            "task": "token-classification",
            "train": str(train),
            "calibration": str(held),
            "max_length": 32,
            "metric": "span_f1",
        },
        "train": {"epochs": 4, "batch_size": 16, "learning_rate": 3e-3, **changes},
    }
