"""Exit layers, speed, correctness and correlation: ours beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from de3lab.paper.names import task_name
from de3lab.paper.published import published
from de3lab.paper.stored import Stored
from de3lab.tabular import Grid

__all__ = ["correctness_tables", "exit_tables", "homogeneity_tables", "speed_tables"]


def exit_tables(stored: Stored) -> list[Grid]:
    """Score and layer speed-up at the paper's thresholds."""
    report, results = published()["exit-layers"], stored.results("exit-layers")
    heads = ["QNLI paper", *(f"{task_name(task)} ours" for task in results)]
    rows = []
    for number, tau in enumerate(report["tau"]):
        cells = [f"{report['accuracy'][number]:.3f} ({report['layer_speedup'][number]:.2f}x)"]
        for document in results.values():
            by_tau = {each["tau"]: each for each in document["numbers"]["thresholds"]}
            seen = by_tau.get(tau)
            cells.append(
                "-" if seen is None else f"{seen['score']:.3f} ({seen['layer_speedup']:.2f}x)"
            )
        rows.append((f"{tau:g}", *cells))
    note = "Accuracy and, in brackets, the layer speed-up."
    return [Grid("Three thresholds", ("threshold", *heads), tuple(rows), note)]


def speed_tables(stored: Stored) -> list[Grid]:
    """Layers, time and operations for one text at the paper's thresholds."""
    report = published()["speed"]
    document = stored.results("speed").get("sst2")
    ours = _matched(document, report["tau"])
    rows = []
    for number, (tau, layers, seconds, tera) in enumerate(
        zip(report["tau"], report["layers"], report["seconds"], report["teraflops"], strict=True)
    ):
        cells: list[str | None] = [None] * 4
        if document is not None and number in ours:
            seen, texts = ours[number], document["numbers"]["rows"]
            cells = [
                f"{seen['tau']:.3g}",
                f"{seen['layers'] / texts:.2f}",
                f"{1e3 * seen['seconds'] / texts:.2f}",
                f"{seen['flops'] / texts / 1e9:.3f}",
            ]
        theirs = (
            f"{tau:g}",
            f"{layers / report['rows']:.2f}",
            f"{1e3 * seconds / report['rows']:.2f}",
            f"{1e3 * tera / report['rows']:.1f}",
        )
        both = (cell for pair in zip(cells, theirs, strict=True) for cell in pair)
        rows.append((f"{report['layers'][0] / layers:.2f}x", *both))
    kinds = ("threshold", "layers", "ms", "GFLOPs")
    columns = ("saved layers", *(f"{kind} {who}" for kind in kinds for who in ("ours", "paper")))
    note = (
        "For one text; ours at thresholds that save as many layers as each of the paper's. The "
        "paper ran BERT-base on a GPU with texts padded to 128 tokens; ours is a smaller model on "
        "a CPU, without padding."
    )
    return [Grid("Layers, time and operations for one text", columns, tuple(rows), note)]


def _matched(document: Mapping[str, Any] | None, taus: Sequence[float]) -> dict[int, Any]:
    """Number of the paper's threshold -> ours: chosen to save as many layers, or the same one."""
    if document is None:
        return {}
    seen = document["numbers"]["thresholds"]
    if document["numbers"]["matched"] and len(seen) == len(taus):
        return dict(enumerate(seen))
    same = {each["tau"]: each for each in seen}
    return {number: same[tau] for number, tau in enumerate(taus) if tau in same}


def correctness_tables(stored: Stored, item: str = "correctness") -> list[Grid]:
    """Accuracy of correctness estimation on all tasks."""
    rows = []
    for task, document in stored.results(item).items():
        numbers = document["numbers"]
        for each in numbers["estimation"]:
            rows.append(
                (
                    task_name(task),
                    each["layer"],
                    f"{each['tau']:g}",
                    f"{100 * each['entropy']['mean']:.1f}",
                    f"{100 * each['edr']['mean']:.1f}",
                    _with_interval(each["difference"]),
                    numbers["runs"],
                )
            )
    if not rows:
        return []
    columns = ("task", "layer", "threshold", "entropy", "EDR", "difference", "runs")
    note = "Percent of rows of which the signal says correctly whether the answer is right; in brackets the 95 % interval over rows."  # noqa: E501
    return [Grid("Accuracy of correctness estimation", columns, tuple(rows), note)]


def homogeneity_tables(stored: Stored) -> list[Grid]:
    """Table XI: Spearman's correlation at layer 2."""
    report, results = published()["homogeneity"], stored.results("homogeneity")
    tasks = list(report["de3"])
    heads = [f"{task_name(task)} {who}" for task in tasks for who in ("ours", "paper")]
    rows = []
    for kind, (method, shown) in enumerate((("de3", "DE3"), ("de3-no-pn", "DE3 w/o PN"))):
        cells: list[str | None] = []
        for task in tasks:
            cells += [_correlation(results.get(task), kind, report["layer"]),
                      f"{report[method][task]:.3f}"]  # fmt: skip
        rows.append((shown, *cells))
    note = "Spearman's correlation of entropy and distance ratio at layer 2; ± over seeds."
    return [Grid("Correlation at layer 2", ("model", *heads), tuple(rows), note)]


def _correlation(document: Mapping[str, Any] | None, kind: int, layer: int) -> str | None:
    if document is None or kind >= len(document["numbers"]["kinds"]):
        return None
    layers = {each["layer"]: each for each in document["numbers"]["kinds"][kind]["layers"]}
    seen = layers.get(layer)
    if seen is None or seen["mean"] is None:
        return None
    return f"{seen['mean']:.3f}" + ("" if seen["sd"] is None else f" ± {seen['sd']:.3f}")


def _with_interval(seen: Mapping[str, Any]) -> str:
    low, high = (100 * seen[end] for end in ("low", "high"))
    return f"{100 * seen['mean']:+.1f} [{low:+.1f}, {high:+.1f}]"
