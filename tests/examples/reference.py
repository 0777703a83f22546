"""What a model in one file answers, by ONNX Runtime alone, and where the examples are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from tokenizers import Tokenizer

from de3bert.runtime.sessions import open_session, share_threads

__all__ = ["BROWSER", "CLOSE", "EXAMPLES", "NODE", "Reference", "Said", "assert_same"]

EXAMPLES = Path(__file__).parents[2] / "examples"
BROWSER, NODE = EXAMPLES / "browser", EXAMPLES / "node"
CLOSE = 1e-4  # the last bits depend on threads and instructions


@dataclass(frozen=True)
class Said:
    """An answer: the label, the layer it was given at, its logits, and the signals on the way."""

    label: str
    layer: int
    logits: list[float]
    signals: list[float]

    @property
    def probability(self) -> float:
        return max(softmax(self.logits))


class Reference:
    """A model in one file that has no defaults; a tab stands between the texts of a pair."""

    def __init__(self, path: Path) -> None:
        share_threads(None)  # all sessions of a process have one pool, or none has
        self.session = open_session(path)
        told = self.session.get_modelmeta().custom_metadata_map
        self.told: dict[str, str] = {
            name.removeprefix("de3bert."): text for name, text in told.items()
        }
        self.labels = json.loads(self.told["labels"])
        self.points = json.loads(self.told["points"])
        self.tokenizer = Tokenizer.from_file(str(path.with_name("tokenizer.json")))

    def answers(self, texts: Iterable[str], numbers: dict[str, Any]) -> list[Said]:
        kinds = {each.name: each.type for each in self.session.get_inputs()}
        rule = {name: np.array(value, "float32" if "float" in kinds[name] else "int64")
                for name, value in numbers.items()}  # fmt: skip
        return [self._answer(text, rule) for text in texts]

    def _answer(self, text: str, rule: dict[str, Any]) -> Said:
        made = self.tokenizer.encode(*text.split("\t"))
        feeds = {"input_ids": np.array([made.ids]), "token_type_ids": np.array([made.type_ids])}
        logits, layer, _, signals = self.session.run(None, {**feeds, **rule})
        label = self.labels[int(logits.argmax())]
        asked = signals[~np.isnan(signals)]
        return Said(label, int(layer), logits[0].tolist(), asked.tolist())


def assert_same(found: Sequence[dict[str, Any]], wanted: Sequence[Said]) -> None:
    """Compares what `OneFile.answer` gave, as JSON, with the reference."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one["label"], one["layer"]) == (other.label, other.layer)
        np.testing.assert_allclose(one["logits"], other.logits, atol=CLOSE)
        signals = [each["signal"] for each in one["exits"] if each["signal"] is not None]
        np.testing.assert_allclose(signals, other.signals, atol=CLOSE)
