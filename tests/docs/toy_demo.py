"""The demo's rows and encoder as toys: it is the commands of a page that are tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fixtures_trained import toy_rows, write_csv

__all__ = ["ROWS", "adapted", "stand_in", "write_reviews"]

ROWS = {"train": 480, "dev": 500, "test": 60}
# What a tiny encoder needs to learn something.
FASTER = ("--set", "train.learning_rate=3e-3", "--set", "train.batch_size=16")
SHORTER = ("--rounds", "1", "--texts", "5")


def write_reviews(folder: Path, sizes: Mapping[str, int] = ROWS) -> list[Path]:
    """train.csv, dev.csv and test.csv, as `de3 demo --data-only` writes them."""
    folder.mkdir()
    made = []
    for seed, (name, count) in enumerate(sizes.items()):
        rows = [(f"{text} not so", label) for text, label in toy_rows(count, seed)]
        made.append(write_csv(folder / f"{name}.csv", rows))
    return made


def stand_in(replace: Callable[[str, object], object], backbone: Path) -> None:
    """Puts the toys in the place of the demo's, and keeps the hub out.

    Args:
        replace: sets an attribute by its dotted name.
    """
    replace("de3bert.model.pretrained.minilm_folder", lambda: backbone)
    replace("de3bert.data.packaged.write_reviews", write_reviews)
    replace("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def adapted(line: str) -> str:
    """A command as a tiny model needs it."""
    line = line.replace("speedup=2.5", "speedup=1.05")  # a tiny model is mostly fixed costs
    line = line.replace("within=0.05:0.95", "within=0.0:1.0")  # and much surer than a real one
    words = line.split()
    if words[:2] == ["de3", "train"] and "--recipe" not in words:
        line += " " + " ".join(FASTER)
    if words[:2] == ["de3", "bench"]:
        line += " " + " ".join(SHORTER)
    return line
