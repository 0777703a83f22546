"""Table VI: executed layers, time and operations."""

from __future__ import annotations

from typing import Any

from de3lab.analysis.speed import PAPER, PAPER_ROWS
from de3lab.documents import AnalysisResult
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import Verdict, decided, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV
from de3lab.tabular import Grid

__all__ = ["SPEED"]

HIGH = 0.9  # a correlation that counts as high


def speed_tables(stored: Stored) -> list[Grid]:
    """Layers, time and operations for one text at the paper's thresholds."""
    document = stored.results(SPEED).get("sst2")
    ours, rows = _matched(document), []
    for number, (tau, layers, seconds, tera) in enumerate(PAPER):
        cells: list[str | None] = [None] * 4
        if document is not None and number in ours:
            seen, texts = ours[number], document.numbers["rows"]
            cells = [
                f"{seen['tau']:.3g}",
                f"{seen['layers'] / texts:.2f}",
                f"{1e3 * seen['seconds'] / texts:.2f}",
                f"{seen['flops'] / texts / 1e9:.3f}",
            ]
        theirs = (
            f"{tau:g}",
            f"{layers / PAPER_ROWS:.2f}",
            f"{1e3 * seconds / PAPER_ROWS:.2f}",
            f"{1e3 * tera / PAPER_ROWS:.1f}",
        )
        both = (cell for pair in zip(cells, theirs, strict=True) for cell in pair)
        rows.append((f"{PAPER[0][1] / layers:.2f}x", *both))
    kinds = ("threshold", "layers", "ms", "GFLOPs")
    columns = ("saved layers", *(f"{kind} {who}" for kind in kinds for who in ("ours", "paper")))
    note = (
        "For one text; ours at thresholds that save as many layers as each of the paper's. The "
        "paper ran BERT-base on a GPU with texts padded to 128 tokens; ours is a smaller model on "
        "a CPU, without padding."
    )
    return [Grid("Layers, time and operations for one text", columns, tuple(rows), note)]


def _matched(document: AnalysisResult | None) -> dict[int, Any]:
    """Number of the paper's threshold -> ours: chosen to save as many layers, or the same one."""
    if document is None:
        return {}
    seen = document.numbers["thresholds"]
    if document.numbers["matched"] and len(seen) == len(PAPER):
        return dict(enumerate(seen))
    same = {each["tau"]: each for each in seen}
    return {number: same[row[0]] for number, row in enumerate(PAPER) if row[0] in same}


def layers_are_time(stored: Stored) -> Verdict:
    """Pearson's correlation of executed layers with time and with operations."""
    document = stored.results(SPEED).get("sst2")
    if document is None:
        return unmeasured("speed")
    found = document.numbers["correlations"]
    shown = {"seconds": "time", "flops": "operations"}
    said = ", ".join(f"{found[key]['value']:.4f} with {name}" for key, name in shown.items())
    listed = ", ".join(f"[{found[key]['low']:.3f}, {found[key]['high']:.3f}]" for key in shown)
    holds = decided(
        yes=all(found[key]["low"] > HIGH for key in shown),
        no=any(found[key]["high"] < HIGH for key in shown),
    )
    count = len(document.numbers["thresholds"])
    test = f"Fisher's 95 % intervals over {count} thresholds above {HIGH:g}: {listed}"
    return Verdict(holds, test, dict(found), f"Pearson's correlation of layers: {said}.")


SPEED = Item(
    name="speed",
    references=("Table VI",),
    labels=("tab:different_speed_measurement",),
    title="Executed layers, time and operations",
    shows="Over 16 thresholds on SST-2 executed layers go with measured time (Pearson 0.96) and "
    "with operations (0.99), so that counting layers is a fair measure of speed.",
    setting="BERT-base, development set of SST-2 (872 rows), texts one at a time on an RTX 3090",
    training=Training("paper_methods", ("de3",), ("sst2",)),
    measurement=Measurement("speed", {"de3": "de3"}, rows=DEV, of="models", seeds="first"),
    tables=speed_tables,
    findings=(Finding("layers", "Executed layers go with time and operations.", layers_are_time),),
)
