"""The block at the head of a model card that the Hugging Face hub reads.

`huggingface_hub.ModelCard` would write it, but a machine that only runs bundles has neither that
library nor one for YAML, and writes cards too, when a point is stored. JSON is YAML, so every value
is written as JSON; the tests read the block with `ModelCard`. No license is claimed: none is known.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from de3bert.printable import printable

__all__ = ["metadata_block"]

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
MARKUP = re.compile(r"[^\w .,+=%-]|(?<=www)\.")
LONGEST = 120  # characters of a name


def metadata_block(
    title: str, task: str, method: str, origin: Mapping[str, Any], points: Mapping[str, Any]
) -> str:
    """The block with its rules of dashes.

    Args:
        task: as Hugging Face calls it.
        origin: `base_model` and `datasets` by their ids on the hub, where they are known.
        points: the operating points of a config; their scores become results.
    """
    found: dict[str, Any] = {
        "library_name": "de3bert",
        "pipeline_tag": task,
        "tags": ["early-exit", task, f"method:{_name(method)}"],
    }
    if base := _ids([origin.get("base_model")]):
        found["base_model"] = base[0]
    if datasets := _ids(origin.get("datasets")):
        found["datasets"] = datasets
    if results := _results(task, points):
        found["model-index"] = [{"name": _name(title), "results": results}]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=True)}" for key, value in found.items()]
    return "\n".join(["---", *lines, "---"])


def _ids(given: object) -> list[str]:
    """Of what a file calls ids of the hub those that are."""
    names = given if isinstance(given, list) else []
    return [name for name in names if isinstance(name, str) and HUB_ID.fullmatch(name)]


def _results(task: str, points: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One result, with a metric for each point; it says that these are calibration rows."""
    metrics = [
        {
            "type": _name(seen["metric"]),
            "value": round(float(seen["score"]), 6),
            "name": f"{_name(seen['metric'])} at {_name(name)}, "
            f"layer speed-up {seen['layer_speedup']:.2f}",
        }
        for name, point in points.items()
        if (seen := point["measured"]) and math.isfinite(seen["score"])
    ]
    rows = {"type": "calibration", "name": "calibration rows", "split": "calibration"}
    return [{"task": {"type": task}, "dataset": rows, "metrics": metrics}] if metrics else []


def _name(text: object) -> str:
    """Foreign text without what could be taken for markup where the block is shown."""
    return MARKUP.sub("_", printable(" ".join(str(text).split())))[:LONGEST]
