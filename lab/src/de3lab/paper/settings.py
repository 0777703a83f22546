"""How our result of an item was measured, in words, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from de3lab.paper.item import Item
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import listed, task_name

__all__ = ["encoder_name", "here", "state_of"]

Document = Mapping[str, Any]
ENCODERS = {  # as study files name them
    "gte-small": "gte-small (12 layers, 384 wide)",
    "$DE3_MINILM": "all-MiniLM-L6-v2 (6 layers, 384 wide)",
    "$DE3_ZH_BACKBONE": "a Chinese BERT-base cut to 6 layers (768 wide)",
}


def encoder_name(backbone: str) -> str:
    """What a study's backbone is, without any folder."""
    name = backbone.rstrip("/").rpartition("/")[2]
    return ENCODERS.get(name, name)


def state_of(item: Item, stored: Stored) -> tuple[str, bool]:
    """What is stored in a few words, and whether it is anything at all."""
    if item.training is None:
        return "nothing to measure", True
    if results := stored.results(item):
        missing = [task for task in item.training.tasks if task not in results]
        lacking = f"; not yet on {listed(missing)}" if missing else ""
        return f"measured on {listed(results)}{lacking}", True
    document = stored.study(item.training.study)
    if document is None or not item.of_study:
        return "not measured yet", False
    progress = document["progress"]
    return f"{progress['done']} of {progress['of']} trainings finished", bool(progress["done"])


def here(item: Item, stored: Stored) -> list[str]:
    """The setting of ours, a line for each study or task."""
    if item.training is None:
        return []
    lines = [_of_result(task, doc) for task, doc in stored.results(item).items()]
    document = stored.study(item.training.study)
    if document is not None and item.of_study:
        lines += _of_study(document)
    return lines


def _of_result(task: str, document: Document) -> str:
    source, numbers = document.get("source", {}), document["numbers"]
    parts = []
    if "backbone" in document:
        parts.append(encoder_name(document["backbone"]))
    if document.get("training_rows"):
        parts.append(f"{document['training_rows']} training rows")
    if "rows" in numbers:
        parts.append(f"{numbers['rows']} rows of {source.get('test', 'the test file')}")
    if document.get("seeds"):
        parts.append(_seeds(document["seeds"]))
    date = str(document["date"]).partition("T")[0]
    return f"{task_name(task)}: {', '.join(parts)}; {date}, {document['machine']}."


def _of_study(document: Document) -> list[str]:
    date = str(document["date"]).partition("T")[0]
    lines = [
        f"{encoder_name(document['backbone'])}; {date}, {'; '.join(document['machines'])}; "
        f"{document['progress']['done']} of {document['progress']['of']} trainings."
    ]
    for task in document["tasks"]:
        if task["rows"] is not None:
            rows = task["rows"]
            lines.append(
                f"{task_name(task['name'])}: {rows['train']} training rows, "
                f"{rows.get('test-' + task['test'])} rows of {task['test']}, scored by "
                f"{' and '.join(task['metrics'])}, {_seeds(task['seeds'])} planned."
            )
    return lines


def _seeds(seeds: Sequence[int]) -> str:
    listed = ", ".join(str(seed) for seed in seeds)
    return f"seed {listed}" if len(seeds) == 1 else f"seeds {listed}"
