"""What one kind of models or rule gives over another, from analyses that compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from de3lab.documents import AnalysisResult
from de3lab.paper.item import Item
from de3lab.paper.judging import Sample, Verdict, above, points, unmeasured
from de3lab.paper.rivals import BOTH
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import listed, task_name
from de3lab.tabular import Grid

__all__ = [
    "above_other",
    "all_speeds",
    "difference_tables",
    "gain_sample",
    "interval_of",
    "pair_of",
]

Results = Mapping[str, AnalysisResult]
Pair = Mapping[str, Any]


def difference_tables(results: Results, title: str) -> list[Grid]:
    """Every compared pair on every task: the difference in points at each layer speed-up."""
    if not results:
        return []
    speeds = all_speeds(results)
    rows = []
    for task, document in results.items():
        for pair in document.numbers["differences"]:
            cells = (_difference(pair["at"].get(f"{speed:g}")) for speed in speeds)
            shown = f"{pair['ours']} - {pair['theirs']}"
            rows.append((task_name(task), shown, pair["pairs"], *cells))
    columns = ("task", "difference", "runs", *(f"{speed:g}x" for speed in speeds))
    note = (
        "Points; in brackets the 95 % interval over rows. Columns are layer speed-ups. The paper "
        "shows curves of these and no numbers."
    )
    return [Grid(title, columns, tuple(rows), note)]


def all_speeds(results: Results) -> Sequence[float]:
    """The speeds of all tasks, rising."""
    return sorted({float(s) for each in results.values() for s in each.numbers["speeds"]})


def above_other(stored: Stored, item: Item, ours: str, theirs: str) -> Verdict:
    """One label less another of the same comparison, the mean of 2x and 3x."""
    results = stored.results(item)
    sample, tasks = gain_sample(results, ours, theirs)
    if not sample:
        return unmeasured(item.name)
    means = ", ".join(
        f"{points(float(np.mean(values)))} at {speed}x"
        for speed, values in _by_speed(results, ours, theirs).items()
    )
    names = {"EDR": "EDR", "de3": "DE3"}
    said = f"{names.get(ours, ours)} less {theirs}: {means} ({listed(tasks)})."
    return above(sample).saying(said)


def gain_sample(results: Results, ours: str, theirs: str) -> tuple[Sample, list[str]]:
    """The mean difference over the speeds of each run, the intervals, and the tasks there are."""
    values: list[float] = []
    intervals, tasks = [], []
    for task, document in results.items():
        pair = pair_of(document, ours, theirs)
        seen = [pair["at"][speed] for speed in BOTH if pair and speed in pair["at"]]
        if seen:
            values += np.mean([each["values"] for each in seen], axis=0).tolist()
            intervals += [interval_of(each["over_rows"]) for each in seen]
            tasks.append(task)
    return Sample(values, intervals), tasks


def _by_speed(results: Results, ours: str, theirs: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for document in results.values():
        pair = pair_of(document, ours, theirs)
        for speed in BOTH:
            if pair and speed in pair["at"]:
                found.setdefault(speed, []).extend(pair["at"][speed]["values"])
    return found


def pair_of(document: AnalysisResult, ours: str, theirs: str) -> Pair | None:
    """The comparison of two labels; that of EDR has its lambda in the label."""
    for pair in document.numbers["differences"]:
        mine = pair["ours"].startswith("EDR") if ours == "EDR" else pair["ours"] == ours
        if mine and pair["theirs"] == theirs:
            found: Pair = pair
            return found
    return None


def interval_of(ends: Sequence[float]) -> tuple[float, float]:
    return float(ends[0]), float(ends[1])


def _difference(seen: Mapping[str, Any] | None) -> str | None:
    if seen is None:
        return None
    low, high = (100 * end for end in seen["over_rows"])
    return f"{100 * seen['mean']:+.2f} [{low:+.2f}, {high:+.2f}]"
