"""Findings about what DE3 costs, and what the regulariser does to the space of representations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.paper.beside_costs import CLASSES, operations, parameters
from de3lab.paper.judging import Holds, Sample, by_intervals, points
from de3lab.paper.names import task_name
from de3lab.paper.published import published
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict, unmeasured, verdict
from de3lab.statistics import share_difference_reach

__all__ = ["COSTS"]

WIDTH, DEPTH, BACKBONE = 768, 12, 109_482_240  # BERT-base with its pooler
SLOWER = 1.10  # a step that takes no more than this is about as fast


def overheads(stored: Stored) -> Verdict:
    """The paper's counts, made anew; and what the same parts cost here."""
    document = next(iter(stored.results("costs").values()), None)
    if document is None:
        return unmeasured("costs")
    numbers = document["numbers"]
    wrong = _wrong_modules(numbers) + _wrong_parameters()
    kind = next((each for each in numbers["kinds"] if each["method"] == "de3"), None)
    said = ""
    if kind is not None:
        said = (
            f"Here DE3 adds {kind['parameters']['added_percent']:.2f} % parameters and "
            f"{_decision(kind['flops']['convention']):.3f} % operations to a layer. "
        )
    checked = "all of the paper's counts come out" if not wrong else f"differ: {', '.join(wrong)}"
    holds: Holds = "no" if wrong else "yes"
    test = "exact counts, nothing left to chance: BERT-base recounted the paper's way"
    return Verdict(holds, f"{said}Recounted, {checked}.", test, {"wrong": wrong})


def training_time(stored: Stored) -> Verdict:
    """A training step of DE3 against plain fine-tuning, timed in turn."""
    document = stored.document("training-time.json")
    if document is None:
        said = "`python benchmarks/training.py --json > results/training-time.json` measures it."
        return Verdict("not measured", said, "", {"n": 0})
    low, high = document["interval"]
    holds: Holds = "not significant"
    if high < SLOWER:
        holds = "yes"
    elif low > SLOWER:
        holds = "no"
    said = f"A step of DE3 takes {document['ratio']:.2f} times one of plain fine-tuning."
    test = (
        f"95 % interval over {document['rounds']} rounds in turn, [{low:.2f}, {high:.2f}], "
        f"below {SLOWER:g}"
    )
    return Verdict(holds, said, test, {"ratio": document["ratio"], "interval": [low, high]})


def space_is_clearer(stored: Stored) -> Verdict:
    """How many rows lie among their own class with the regulariser, less without it.

    One model of each kind, so that only rows vary: intervals as of two independent shares, which
    are wider than those of the same rows.
    """
    values, intervals, said = [], [], []
    for task, document in stored.results("space").items():
        numbers = document["numbers"]
        gains = _gains(numbers)
        if not gains:
            continue
        values.append(sum(gain for _, gain, _ in gains) / len(gains))
        intervals += [(gain - reach, gain + reach) for _, gain, reach in gains]
        listed = ", ".join(f"{points(gain)} at layer {layer}" for layer, gain, _ in gains)
        said.append(f"{task_name(task)} {listed}")
    if not values:
        return unmeasured("space")
    judged = by_intervals(Sample(values, intervals))
    start = "Rows whose nearest others are of their class, with less without the regulariser"
    return verdict(judged, f"{start}: {'; '.join(said)}.")


def _gains(numbers: Mapping[str, Any]) -> list[tuple[int, float, float]]:
    """(layer, first label less the second, 1.96 standard errors) of each layer."""
    labels = list(dict.fromkeys(panel["label"] for panel in numbers["panels"]))
    if len(labels) < 2:
        return []
    found = []
    for layer in numbers["layers"]:
        ours, theirs = (
            next(
                float(panel["neighbours_accuracy"])
                for panel in numbers["panels"]
                if (panel["label"], panel["layer"]) == (label, layer)
            )
            for label in labels[:2]
        )
        reach = share_difference_reach(ours, theirs, numbers["rows"])
        found.append((layer, ours - theirs, reach))
    return found


def _wrong_modules(numbers: Mapping[str, Any]) -> list[str]:
    """The published operations that the recount does not give, digit by digit."""
    return [
        f"{module} ({classes} classes)"
        for module, row in published()["costs"]["flops"].items()
        for key, classes in CLASSES.items()
        if operations(numbers["paper"]["recounted"][str(classes)][module]) != row[key]
    ]


def _wrong_parameters() -> list[str]:
    """The published parameters that arithmetic does not give, digit by digit."""
    report, wrong = published()["costs"]["parameters"], []
    for key, classes in CLASSES.items():
        heads = (DEPTH - 1) * (WIDTH * classes + classes)
        networks = (DEPTH - 1) * (WIDTH * WIDTH + WIDTH)
        counts = {
            "full": parameters(BACKBONE, added=False),
            "deebert": parameters(heads, added=True),
            "de3": parameters(heads + networks, added=True),
        }
        wrong += [
            f"{name} ({classes} classes)" for name in counts if counts[name] != report[name][key]
        ]
    return wrong


def _decision(modules: Mapping[str, float]) -> float:
    """Operations of deciding at an exit, in percent of a layer."""
    spent = sum(
        modules.get(part, 0.0) for part in ("prototypical network", "internal classifier", "EDR")
    )
    return 100 * spent / modules["encoder layer"]


COSTS = {
    finding.name: finding
    for finding in (
        Finding("overheads", "DE3 adds about 6 % parameters and 0.067 % operations to a layer.",
                ("costs",), overheads),
        Finding("training-time", "Training takes about as long as plain fine-tuning.", ("costs",),
                training_time),
        Finding("space", "The regulariser makes classes clearer apart.", ("space",),
                space_is_clearer),
    )
}  # fmt: skip
