"""The latency chart draws what it is given and nothing else."""

from __future__ import annotations

from de3lab.figures.stacking import StackedSeries, draw_latency


def row(name: str, accuracy: float, p50: float) -> dict:
    return {"name": name, "accuracy": accuracy, "latency_ms": {"p50": p50}, "mark": name[-2:]}


def test_draws_series_and_leaves_out_what_is_missing(tmp_path):
    rows = [row("hf", 0.9, 20.0), row("ours:2x", 0.89, 4.0), row("ours:3x", 0.85, 2.5)]
    series = (
        StackedSeries("eager", ("hf",), "s"),
        StackedSeries("ours", ("ours:2x", "ours:3x", "ours:9x")),
    )
    draw_latency(tmp_path / "all.svg", rows, series, "a title")
    drawn = (tmp_path / "all.svg").read_text(encoding="utf-8")
    assert "<svg" in drawn
    fewer = tmp_path / "fewer.svg"
    draw_latency(fewer, rows[:1], series, "a title")
    assert len(fewer.read_text(encoding="utf-8")) < len(drawn)
