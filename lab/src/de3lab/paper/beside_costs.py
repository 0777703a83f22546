"""Parameters, training time and operations: ours beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.paper.names import task_name
from de3lab.paper.published import published
from de3lab.paper.stored import Stored
from de3lab.tabular import Grid

__all__ = ["cost_tables", "operations", "parameters"]

METHODS = {"full": "BERT-base", "deebert": "DeeBERT", "de3": "DE3-BERT"}
CLASSES = {"k2": 2, "k3": 3}
THOUSAND = 1e3
MILLION = 1e6


def cost_tables(stored: Stored) -> list[Grid]:
    """The paper's two tables, with what the same models cost here."""
    document = next(iter(stored.results("costs").values()), None)
    numbers = None if document is None else document["numbers"]
    return [_parameters(numbers), _minutes(stored, numbers), _modules(numbers)]


def parameters(count: float, added: bool) -> str:
    """As the paper prints them: `109.48M`, `+16.92K`."""
    sign = "+" if added else ""
    if count < MILLION:
        return f"{sign}{count / THOUSAND:.2f}K"
    return f"{sign}{count / MILLION:.2f}M"


def operations(count: float) -> str:
    """As the paper prints them: `786.4K`, `1813.5M`."""
    return f"{count / THOUSAND:.1f}K" if count < MILLION else f"{count / MILLION:.1f}M"


def _parameters(numbers: Mapping[str, Any] | None) -> Grid:
    report = published()["costs"]["parameters"]
    rows = []
    for method, shown in METHODS.items():
        kind = _kind(numbers, method)
        rows.append((f"{shown} ({method})", _own(kind), _percent(kind), report[method]["k2"],
                     report[method]["k3"]))  # fmt: skip
    columns = ("model", "ours", "more, ours", "paper, 2 classes", "paper, 3 classes")
    note = "Of the full model all but its head, of the others what they add to it."
    return Grid("Parameters", columns, tuple(rows), note)


def _minutes(stored: Stored, numbers: Mapping[str, Any] | None) -> Grid:
    report = published()["costs"]["minutes"]
    tasks = list(report["full"])
    rows = []
    for method, shown in METHODS.items():
        kind = _kind(numbers, method)
        seconds = None if kind is None else kind["training"]["seconds_per_step"]
        cell = None if seconds is None else f"{seconds:.2f}"
        rows.append((f"{shown} ({method})", cell, *(f"{report[method][t]:g}" for t in tasks)))
    columns = ("model", "seconds a step, ours", *(f"minutes, {task_name(t)}, paper" for t in tasks))
    timed = stored.document("training-time.json")
    note = (
        "The paper: minutes until the best checkpoint. Ours: wall-clock time of trainings at "
        "different times of a shared machine, so that they compare roughly at best."
    )
    if timed is not None:
        low, high = timed["interval"]
        note += (
            f" Measured in turn, a step of DE3 takes {timed['ratio']:.2f} times "
            f"one of plain fine-tuning (95 %: {low:.2f} to {high:.2f}; `{timed['command']}`)."
        )
    return Grid("Training time", columns, tuple(rows), note)


def _modules(numbers: Mapping[str, Any] | None) -> Grid:
    kind = _kind(numbers, "de3")
    rows = []
    for module, paper in published()["costs"]["flops"].items():
        cells: list[str | None] = [None, None, None, None]
        if numbers is not None:
            recounted = numbers["paper"]["recounted"]
            cells[:2] = [operations(recounted[str(k)][module]) for k in CLASSES.values()]
        if kind is not None:
            counts = kind["flops"]
            cells[2:] = [_count(counts[how].get(module)) for how in ("convention", "counted")]
        rows.append((module, paper["k2"], cells[0], paper["k3"], cells[1], *cells[2:]))
    columns = ("module", "paper, 2 classes", "recounted", "paper, 3 classes", "recounted",
               "ours, the paper's way", "ours, all products")  # fmt: skip
    length = "" if numbers is None else f" Texts of {numbers['length']} tokens."
    note = (
        "Recounted: BERT-base by the paper's way of counting, which leaves out the products of "
        f"attention. All products has them.{length}"
    )
    return Grid("Operations of each module", columns, tuple(rows), note)


def _kind(numbers: Mapping[str, Any] | None, method: str) -> Mapping[str, Any] | None:
    kinds = [] if numbers is None else numbers["kinds"]
    return next((kind for kind in kinds if kind["method"] == method), None)


def _own(kind: Mapping[str, Any] | None) -> str | None:
    if kind is None:
        return None
    seen = kind["parameters"]
    if kind["method"] == "full":
        return parameters(seen["backbone"], added=False)
    return parameters(seen["added"], added=True)


def _percent(kind: Mapping[str, Any] | None) -> str | None:
    if kind is None or kind["method"] == "full":
        return None
    return f"{kind['parameters']['added_percent']:.2f} %"


def _count(count: float | None) -> str | None:
    return None if count is None else operations(count)
