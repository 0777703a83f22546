"""Fig. 6: where rows leave at three thresholds."""

from __future__ import annotations

from itertools import pairwise

from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import Verdict, by_construction, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, task_name
from de3lab.tabular import Grid

__all__ = ["EXIT_LAYERS"]

PUBLISHED = {  # QNLI dev: threshold -> accuracy, layer speed-up
    0.14: (0.906, 1.34),
    0.40: (0.901, 2.07),
    0.65: (0.811, 4.04),
}


def exit_tables(stored: Stored) -> list[Grid]:
    """Score and layer speed-up at the paper's thresholds."""
    results = stored.results(EXIT_LAYERS)
    rows = []
    for tau, (accuracy, speed) in PUBLISHED.items():
        cells = [f"{accuracy:.3f} ({speed:.2f}x)"]
        for document in results.values():
            seen = {each["tau"]: each for each in document.numbers["thresholds"]}.get(tau)
            cells.append(
                "-" if seen is None else f"{seen['score']:.3f} ({seen['layer_speedup']:.2f}x)"
            )
        rows.append((f"{tau:g}", *cells))
    heads = ("threshold", "QNLI paper", *(f"{task_name(task)} ours" for task in results))
    note = "Accuracy and, in brackets, the layer speed-up."
    return [Grid("Three thresholds", heads, tuple(rows), note)]


def exits_move(stored: Stored) -> Verdict:
    """Mean layers fall from threshold to threshold; of a threshold rule nothing else can be."""
    falls, said = [], []
    for task, document in stored.results(EXIT_LAYERS).items():
        seen = sorted(document.numbers["thresholds"], key=lambda each: float(each["tau"]))
        layers = [float(each["layers_mean"]) for each in seen]
        falls.append(all(b < a for a, b in pairwise(layers)))
        listed = ", ".join(
            f"{each['layers_mean']:.1f} (score {100 * each['score']:.1f}) at {each['tau']:g}"
            for each in seen
        )
        said.append(f"{task_name(task)} {listed}")
    if not falls:
        return unmeasured("exit-layers")
    test = (
        "exact: a row that leaves at a threshold leaves at every higher one, no later; mean layers "
        "are compared from threshold to threshold"
    )
    statement = f"Mean layers: {'; '.join(said)}."
    return by_construction(all(falls), test, {"falls": falls}).saying(statement)


EXIT_LAYERS = Item(
    name="exit-layers",
    references=("Fig. 6",),
    labels=("fig:sample_distribution",),
    title="Where rows leave at three thresholds",
    shows="On QNLI a higher threshold sends rows out at shallower layers: faster, and less right.",
    setting="BERT-base, all training rows, development set of QNLI",
    training=Training("paper_methods", ("de3",), ("qnli", "sst2")),
    measurement=Measurement(
        "exit-layers",
        {"de3": "de3"},
        rows=DEV,
        settings={"qnli": {"family": "edr(lambda=2.0)"}, "sst2": {"family": "edr(lambda=1.0)"}},
        seeds="first",
    ),
    tables=exit_tables,
    findings=(
        Finding("exits", "With a higher threshold, rows leave at shallower layers.", exits_move),
    ),
)
