"""Fig. 10: rows and prototypes in two dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import Sample, Verdict, above, points, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, task_name
from de3lab.statistics import share_difference_reach

__all__ = ["SPACE"]


def space_is_clearer(stored: Stored) -> Verdict:
    """How many rows lie among their own class with the regulariser, less without it.

    One model of each kind and task, so that a task is a run; its layers count together. Intervals
    are as of two independent shares, which are wider than those of the same rows.
    """
    values, intervals, said = [], [], []
    for task, document in stored.results(SPACE).items():
        gains = _gains(document.numbers)
        if not gains:
            continue
        values.append(sum(gain for _, gain, _ in gains) / len(gains))
        intervals += [(gain - reach, gain + reach) for _, gain, reach in gains]
        listed = ", ".join(f"{points(gain)} at layer {layer}" for layer, gain, _ in gains)
        said.append(f"{task_name(task)} {listed}")
    if not values:
        return unmeasured("space")
    start = "Rows whose nearest others are of their class, with less without the regulariser"
    return above(Sample(values, intervals)).saying(f"{start}: {'; '.join(said)}.")


def _gains(numbers: Mapping[str, Any]) -> list[tuple[int, float, float]]:
    """(layer, first label less the second, 1.96 standard errors) of each layer."""
    labels = list(dict.fromkeys(panel["label"] for panel in numbers["panels"]))
    if len(labels) < 2:
        return []
    shares = {
        (panel["label"], panel["layer"]): float(panel["neighbours_accuracy"])
        for panel in numbers["panels"]
    }
    found = []
    for layer in numbers["layers"]:
        ours, theirs = (shares[label, layer] for label in labels[:2])
        reach = share_difference_reach(ours, theirs, numbers["rows"])
        found.append((layer, ours - theirs, reach))
    return found


SPACE = Item(
    name="space",
    references=("Fig. 10",),
    labels=("fig:visualization",),
    title="Rows and prototypes in two dimensions",
    shows="At layers 2 and 5 of MNLI models, classes are told apart more clearly with the "
    "regulariser than without it.",
    setting="BERT-base, development set of MNLI, layers 2 and 5",
    training=Training("paper_components", ("de3", "de3-no-pn-no-dar"), ("mnli", "sst2")),
    measurement=Measurement(
        "space",
        {"de3": "de3", "w/o DAR": "de3-no-pn-no-dar"},
        rows=DEV,
        of="models",
        seeds="first",
    ),
    findings=(Finding("space", "The regulariser makes classes clearer apart.", space_is_clearer),),
)
