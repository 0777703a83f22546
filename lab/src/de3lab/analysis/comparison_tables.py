"""The tables and the figure of a comparison: functions of its numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3lab.analysis.formatting import runs, with_spread
from de3lab.figures.lines import Panel, PlotLine, draw_lines
from de3lab.study.lines import speed_key
from de3lab.tabular import Grid

__all__ = ["SPEED", "difference_table", "draw_comparison", "score_table"]

SPEED = "layer speed-up (full depth / mean layers)"
FEW = 3  # with fewer seeds their interval is wider than any picture
BESIDE = 0.025  # distance of neighbouring bars, as a share of the speeds


def score_table(numbers: Mapping[str, Any], title: str, first: str, note: str = "") -> Grid:
    """Who scores what at each layer speed-up; `first` is the head of the column of names."""
    keys = [speed_key(speed) for speed in numbers["speeds"]]
    rows = tuple(
        (
            line["label"],
            line["runs"],
            with_spread(line["full"]),
            *(with_spread(line["at"][key]) for key in keys),
        )
        for line in numbers["lines"]
    )
    columns = (first, "runs", "full depth", *(f"{key}x" for key in keys))
    about = f"n = {numbers['rows']} rows. Columns are layer speed-ups."
    return Grid(title, columns, rows, f"{about} {note}".strip())


def difference_table(numbers: Mapping[str, Any], title: str, note: str = "") -> Grid:
    """Every difference at every layer speed-up, with its noise."""
    columns = ("difference", "layer speed-up", "pairs", "mean ± sd", "95 % over rows",
               "95 % over seeds", "one-tailed p", "beyond noise")  # fmt: skip
    rows = tuple(
        (f"{pair['ours']} - {pair['theirs']}", f"{key}x", *_difference_cells(seen))
        for pair in numbers["differences"]
        for key, seen in pair["at"].items()
    )
    about = (
        f"Rows: bootstrap of {numbers['resamples']} resamples, the same for both sides. Seeds: "
        "Student's interval and one-tailed paired t-test that the first is higher, runs paired in "
        "the order given; p is not corrected for several tests. Beyond noise: no interval holds 0."
    )
    return Grid(title, columns, rows, f"{about} {note}".strip())


def _difference_cells(seen: Mapping[str, Any]) -> tuple[Any, ...]:
    def ends(interval: Sequence[float] | None) -> str | None:
        return None if interval is None else f"{interval[0]:+.4f} to {interval[1]:+.4f}"

    p = None if seen["p"] is None else f"{seen['p']:.2g}"
    return (seen["n"], with_spread(seen, "+"), ends(seen["over_rows"]), ends(seen["over_seeds"]),
            p, seen["beyond_noise"])  # fmt: skip


def draw_comparison(path: Path, numbers: Mapping[str, Any], title: str = "") -> None:
    """The curves above, the differences to the reference below, at the width of a column."""
    counts = sorted({line["runs"] for line in numbers["lines"]})
    many = runs(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} runs (mean ± sd)"
    shown = [line["curve"]["layer_speedup"] for line in numbers["lines"]]
    limits = (min(x[0] for x in shown), max(x[-1] for x in shown))
    metric, over = numbers["metric"], _over(numbers)
    above = Panel(
        [_curve_line(line) for line in numbers["lines"]],
        "",
        f"{metric}\nn = {numbers['rows']}, {many}",
        x_limits=limits,
    )
    below = Panel(
        _difference_lines(numbers, over),
        SPEED,
        f"{metric}, difference\nto {numbers['reference']}, 95 % {over.replace('_', ' ')}",
        x_limits=limits,
        zero=True,
    )
    draw_lines(path, [above, below], title=title)


def _over(numbers: Mapping[str, Any]) -> str:
    """Which interval to draw: over seeds where there are enough of them everywhere."""
    enough = all(pair["pairs"] >= FEW for pair in numbers["differences"])
    return "over_seeds" if enough else "over_rows"


def _curve_line(line: Mapping[str, Any]) -> PlotLine:
    seen = line["curve"]
    low = high = None
    if seen["sd"] is not None:
        both = list(zip(seen["score"], seen["sd"], strict=True))
        low, high = [mean - sd for mean, sd in both], [mean + sd for mean, sd in both]
    return PlotLine(line["label"], seen["layer_speedup"], seen["score"], low, high)


def _difference_lines(numbers: Mapping[str, Any], over: str) -> list[PlotLine]:
    """Each of the others minus the reference, in the colour of its curve.

    The lines stand a little beside each other, so that no bar hides another.
    """
    reference, speeds = numbers["reference"], numbers["speeds"]
    pairs = [each for each in numbers["differences"] if reference in (each["ours"], each["theirs"])]
    step = BESIDE * (speeds[-1] - speeds[0])
    lines = []
    for number, pair in enumerate(pairs):
        sign = 1 if pair["theirs"] == reference else -1
        seen = list(pair["at"].values())
        ends = [sorted(sign * end for end in each[over]) for each in seen]
        lines.append(
            PlotLine(
                pair["ours"] if sign == 1 else pair["theirs"],
                [speed + step * (number - (len(pairs) - 1) / 2) for speed in speeds],
                [sign * each["mean"] for each in seen],
                [low for low, _ in ends],
                [high for _, high in ends],
                kind="marked",
            )
        )
    return lines
