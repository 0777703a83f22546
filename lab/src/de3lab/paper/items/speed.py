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

WORTH = 0.5  # of the ideal: what a saved layer is worth at least, if layers are to stand for time


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
    """How much less time the paper's ratio of layers takes, against full depth without any test.

    Operations are counted from layers and cannot but go with them. The correlation is told, and not
    tested: thresholds of one model are not independent samples.
    """
    document = stored.results(SPEED).get("sst2")
    if document is None:
        return unmeasured("speed")
    found, spent = document.numbers["correlations"], document.numbers["efficiency"]
    count = len(document.numbers["thresholds"])
    r = f"over {count} thresholds layers and time correlate with {found['seconds']['value']:.2f}"
    if spent is None:
        return unmeasured("speed")
    ratio, layers = spent["time_ratio_untested"], spent["layer_ratio"]
    needed = 1 + WORTH * (layers - 1)
    holds = decided(yes=ratio["low"] > needed, no=ratio["high"] < needed)
    test = (
        f"95 % interval over texts of the time ratio, [{ratio['low']:.2f}, {ratio['high']:.2f}], "
        f"above {needed:.2f}: a saved layer is worth at least {WORTH:g} of its time. Operations "
        "are counted from layers"
    )
    said = (
        f"{layers:.2f}x fewer layers take {ratio['value']:.2f}x less time than full depth without "
        f"any test ({spent['percent_of_ideal_untested']:.0f} % of the ideal; "
        f"{spent['percent_of_ideal']:.0f} % against full depth with its tests); {r}."
    )
    return Verdict(
        holds, test, {"time_ratio": ratio, "correlation": found["seconds"]["value"]}, said
    )


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
    findings=(
        Finding("layers", "Executed layers go with time, and may stand for it.", layers_are_time),
    ),
)
