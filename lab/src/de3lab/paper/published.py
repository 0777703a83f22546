"""The paper's tables of methods by tasks, read from text set as the paper sets them."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["METRICS", "Published", "score_rows"]

METRICS = ("f1", "accuracy")  # in the order of the paper's "F1/Acc"
Published: TypeAlias = dict[str, dict[str, dict[str, Any]]]  # speed -> method -> row


def score_rows(text: str) -> Published:
    """Layer speed-up -> method -> its name in the paper, a cell for each task, and the average.

    The first line names the tasks. Every other one has a layer speed-up, our name of the method,
    the paper's, a cell for each task, and the average. A cell is an accuracy, `f` and an F1, or
    `F1/accuracy`, all in percent; behind an `@` the layer speed-up beside it. `-` is nothing.

    Example:
        >>> score_rows("sst2 qqp\\n 2 de3 DE3-BERT 92.5@2.02 71.2/89.4 -")["2"]["de3"]["sst2"]
        {'accuracy': 92.5, 'speed': 2.02}
    """
    head, *lines = [line.split() for line in text.strip().splitlines()]
    found: Published = {}
    for speed, method, name, *cells, average in lines:
        row: dict[str, Any] = {"name": name}
        row |= {task: _cell(c) for task, c in zip(head, cells, strict=True) if c != "-"}
        if average != "-":
            row["average"] = float(average)
        found.setdefault(speed, {})[method] = row
    return found


def _cell(text: str) -> dict[str, float]:
    score, _, speed = text.partition("@")
    if score.startswith("f"):
        found = {"f1": float(score[1:])}
    elif "/" in score:
        found = dict(zip(METRICS, map(float, score.split("/")), strict=True))
    else:
        found = {"accuracy": float(score)}
    return {**found, "speed": float(speed)} if speed else found
