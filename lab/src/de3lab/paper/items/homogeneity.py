"""Table XI: whether entropy and distance ratio say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.documents import AnalysisResult
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import Sample, Verdict, above, in_hundredths, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, FOUR, task_name
from de3lab.tabular import Grid

__all__ = ["HOMOGENEITY"]

LAYER = 2
PUBLISHED = {  # Spearman's correlation at that layer
    "DE3": {"qqp": 0.207, "mnli": 0.018, "sst2": 0.145, "qnli": 0.066},
    "DE3 w/o PN": {"qqp": 0.569, "mnli": 0.389, "sst2": 0.479, "qnli": 0.422},
}


def homogeneity_tables(stored: Stored) -> list[Grid]:
    """Spearman's correlation at layer 2."""
    results, rows = stored.results(HOMOGENEITY), []
    for kind, (shown, published) in enumerate(PUBLISHED.items()):
        cells: list[str | None] = []
        for task, theirs in published.items():
            cells += [_correlation(results.get(task), kind), f"{theirs:.3f}"]
        rows.append((shown, *cells))
    tasks = PUBLISHED["DE3"]
    heads = (f"{task_name(task)} {who}" for task in tasks for who in ("ours", "paper"))
    note = "Spearman's correlation of entropy and distance ratio at layer 2; ± over seeds."
    return [Grid("Correlation at layer 2", ("model", *heads), tuple(rows), note)]


def _correlation(document: AnalysisResult | None, kind: int) -> str | None:
    if document is None or kind >= len(document.numbers["kinds"]):
        return None
    seen = _at(document.numbers, kind, LAYER)
    if seen is None or seen["mean"] is None:
        return None
    return f"{seen['mean']:.3f}" + ("" if seen["sd"] is None else f" ± {seen['sd']:.3f}")


def networks_decorrelate(stored: Stored) -> Verdict:
    """Spearman's correlation without prototypical networks less that with them."""
    values: list[float] = []
    intervals, said = [], []
    for task, document in stored.results(HOMOGENEITY).items():
        numbers = document.numbers
        layer = numbers["layers"][0]
        ours, theirs = (_at(numbers, kind, layer) for kind in (0, 1))
        less = next(each for each in numbers["differences"] if each["layer"] == layer)
        if not (ours and theirs) or ours["mean"] is None or theirs["mean"] is None:
            continue
        values += [b - a for a, b in zip(ours["values"], theirs["values"], strict=True)]
        intervals.append((less["low"], less["high"]))
        said.append(f"{task_name(task)} {ours['mean']:.2f} with, {theirs['mean']:.2f} without")
    if not values:
        return unmeasured("homogeneity")
    judged = in_hundredths(above(Sample(values, intervals)))
    return judged.saying(f"Correlation at layer 2: {'; '.join(said)}.")


def _at(numbers: Mapping[str, Any], kind: int, layer: int) -> Mapping[str, Any] | None:
    layers = {each["layer"]: each for each in numbers["kinds"][kind]["layers"]}
    return layers.get(layer)


HOMOGENEITY = Item(
    name="homogeneity",
    references=("Table XI",),
    labels=("tab:PN_homo",),
    title="Do entropy and distance ratio say the same?",
    shows="At layer 2 the correlation of entropy and distance ratio is low with prototypical "
    "networks and clearly higher without.",
    setting="BERT-base, all training rows, development sets",
    published=PUBLISHED,
    training=Training("paper_components", ("de3", "de3-no-pn"), FOUR),
    measurement=Measurement("homogeneity", {"de3": "de3", "w/o PN": "de3-no-pn"}, rows=DEV),
    tables=homogeneity_tables,
    findings=(
        Finding(
            "correlation",
            "Prototypical networks lower the correlation of entropy and distance ratio.",
            networks_decorrelate,
        ),
    ),
)
