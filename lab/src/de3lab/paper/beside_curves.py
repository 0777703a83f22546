"""Summaries of trade-off analyses over tasks; the paper has curves of these, no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from de3lab.paper.names import task_name
from de3lab.paper.published import published
from de3lab.paper.stored import Stored
from de3lab.tabular import Grid

__all__ = ["alpha_tables", "difference_tables", "lambda_tables", "shift_tables"]

Results = Mapping[str, Mapping[str, Any]]


def difference_tables(results: Results, title: str) -> list[Grid]:
    """Every compared pair on every task: the difference in points at each layer speed-up."""
    if not results:
        return []
    speeds = _all(results, lambda numbers: numbers["speeds"])
    rows = []
    for task, document in results.items():
        for pair in document["numbers"]["differences"]:
            cells = (_difference(pair["at"].get(f"{speed:g}")) for speed in speeds)
            shown = f"{pair['ours']} - {pair['theirs']}"
            rows.append((task_name(task), shown, pair["pairs"], *cells))
    columns = ("task", "difference", "runs", *(f"{speed:g}x" for speed in speeds))
    note = (
        "Points; in brackets the 95 % interval over rows. Columns are layer speed-ups. The paper "
        "shows curves of these and no numbers."
    )
    return [Grid(title, columns, tuple(rows), note)]


def lambda_tables(stored: Stored) -> list[Grid]:
    """The best lambda at each layer speed-up, and what it gives over entropy."""
    results = stored.results("lambda")
    if not results:
        return []
    speeds = _all(results, lambda numbers: numbers["speeds"])
    rows = []
    for task, document in results.items():
        by_speed = {each["speed"]: each for each in document["numbers"]["by_speed"]}
        cells = (_best(by_speed.get(speed)) for speed in speeds)
        rows.append((task_name(task), document["numbers"]["runs"], *cells))
    columns = ("task", "runs", *(f"{speed:g}x" for speed in speeds))
    note = (
        "In brackets what it gives over lambda 0, which is entropy, in points; never below 0, "
        "since lambda is chosen on the rows it is scored on. The paper recommends a search from "
        "{} to {}.".format(*published()["lambda"]["searched"])
    )
    return [Grid("Best lambda at each layer speed-up", columns, tuple(rows), note)]


def alpha_tables(stored: Stored) -> list[Grid]:
    """How far scores differ between values of alpha."""
    results = stored.results("alpha")
    if not results:
        return []
    speeds = _all(results, lambda numbers: numbers["speeds"])
    limit = f"below {published()['alpha']['largest_change']:g}"
    rows: list[tuple[Any, ...]] = []
    for task, document in results.items():
        numbers = document["numbers"]
        by_speed = {each["speed"]: each for each in numbers["by_speed"]}
        cells = (_range(by_speed.get(speed)) for speed in speeds)
        listed = ", ".join(f"{alpha:g}" for alpha in numbers["alphas"])
        rows.append((task_name(task), listed, min(numbers["runs"]), *cells))
    every = ", ".join(f"{alpha:g}" for alpha in published()["alpha"]["values"])
    rows.append(("paper: SST-2, QNLI", every, None, *(limit for _ in speeds)))
    columns = ("task", "alpha", "runs of each", *(f"{speed:g}x" for speed in speeds))
    note = "Highest mean score less the lowest, in points; ± deviation between runs of one alpha."
    return [Grid("How much alpha matters", columns, tuple(rows), note)]


def shift_tables(stored: Stored) -> list[Grid]:
    """Table VII: CeeBERT, and differences to it, near a layer speed-up of 3x."""
    results, report = stored.results("shift"), published()["shift"]
    rules = {
        "ceebert": "CeeBERT",
        "de3": "DE3-BERT",
        "de3 adapted": "DE3-BERT w/ ACP",
        "joint-entropy": "entropy",
    }
    heads = [f"{report[task]['name']} {who}" for task in report for who in ("ours", "paper")]
    rows = []
    for label, shown in rules.items():
        cells: list[str | None] = []
        for task in report:
            document = results.get(task)
            cells.append(None if document is None else _shifted(document["numbers"], label))
            cells.append(_published_shift(report[task].get(label.replace(" ", "-"))))
        rows.append((shown, *cells))
    note = (
        "Percent, and points to CeeBERT, near a layer speed-up of 3x; the paper: means of 5 runs."
    )
    return [Grid("Shifted data", ("method", *heads), tuple(rows), note)]


def _shifted(numbers: Mapping[str, Any], label: str, speed: str = "3") -> str | None:
    seen = numbers["at"].get(speed, {}).get(label)
    if seen is None:
        return None
    at = f"({seen['layer_speedup']['mean']:.2f}x)"
    shown = seen["score"] if label == numbers["reference"] else seen["difference"]
    sign = "" if label == numbers["reference"] else "+"
    spread = "" if shown["sd"] is None else f" ± {100 * shown['sd']:.1f}"
    return f"{100 * shown['mean']:{sign}.1f}{spread} {at}"


def _published_shift(cell: Mapping[str, float] | None) -> str | None:
    if cell is None:
        return None
    number = f"{cell['accuracy']:.1f}" if "accuracy" in cell else f"{cell['difference']:+.1f}"
    return f"{number} ({cell['speed']:.2f}x)"


def _difference(seen: Mapping[str, Any] | None) -> str | None:
    if seen is None:
        return None
    low, high = (100 * end for end in seen["over_rows"])
    return f"{100 * seen['mean']:+.2f} [{low:+.2f}, {high:+.2f}]"


def _best(seen: Mapping[str, Any] | None) -> str | None:
    if seen is None:
        return None
    best = "any" if seen["shape"] == "flat" else f"{seen['best_lambda']:g}"
    return f"{best} ({100 * seen['gain']['mean']:+.2f})"


def _range(seen: Mapping[str, Any] | None) -> str | None:
    if seen is None:
        return None
    spread = "" if seen["run_sd"] is None else f" ± {100 * seen['run_sd']:.2f}"
    return f"{100 * seen['range']:.2f}{spread}"


def _all(results: Results, of: Any) -> Sequence[float]:
    """The speeds of all tasks, rising."""
    return sorted({float(speed) for each in results.values() for speed in of(each["numbers"])})
