"""The README: short, with numbers that stand in stored results."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.docs.pages import ROOT

from de3bert.tasks.answers import Prediction
from de3bert.tasks.explanations import ExplainedLayer, Explanation

README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "lab" / "results"
PROSE = " ".join(README.split())
DEMO: dict[str, Any] = json.loads((RESULTS / "demo" / "result.json").read_text(encoding="utf-8"))
POINTS = {point["point"]: point for point in DEMO["points"]}


def test_it_is_short():
    assert len(README.split()) <= 700  # as `wc -w` counts: tables and code are words too


def test_the_first_things_come_first():
    top = README[:900]
    assert "stops at the layer where it is already *sure*" in top
    assert top.index("make demo") < top.index("make test") < top.index("![")


def test_the_demos_numbers_are_those_stored():
    full, half = POINTS["full"], POINTS["2x"]
    assert f"with {half['accuracy']:.3f} accuracy (full depth: {full['accuracy']:.3f})" in PROSE
    assert f"{half['layer_speedup']:.2f} times fewer layers" in PROSE
    times = f"{half['latency_p50']:.1f} ms instead of {full['latency_p50']:.1f} ms per text"
    assert times in PROSE
    assert DEMO["date"][:10] in PROSE


def test_the_python_output_is_the_demos():
    example = next(each for each in DEMO["examples"] if each["text"].startswith("a joy"))
    said = example["prediction"]
    assert f"label={said['label']!r}, score={said['score']!r}" in PROSE
    assert f"exit_layer={said['exit_layer']}, layers={said['layers']}" in PROSE
    layers = tuple(ExplainedLayer(**layer) for layer in example["layers"])
    shown = Explanation(example["text"], example["policy"], Prediction(**said), layers)
    for line in str(shown).splitlines()[2:5]:
        assert f"# {line}" in README


def table(path: str) -> list[list[str]]:
    text = (RESULTS / path).read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


def test_attaching_gives_what_is_stored():
    head, _, row, *_ = table("attach/table.md")
    found = dict(zip(head, row, strict=True))
    assert f"{int(found['rows']):,} texts" in PROSE
    seconds = sum(float(found[name].split()[0]) for name in ("reading", "fitting"))
    assert f"{seconds:.0f} s" in PROSE
    full, twice, thrice = (float(found[name]) for name in ("full depth", "2x", "3x"))
    assert f"{full:.3f} at full depth, {twice:.3f} at 2x and {thrice:.3f} at 3x" in PROSE


def test_promises_are_broken_as_seldom_as_is_stored():
    rows = [row for row in table("promises/table.md") if row[1:2] == ["agree=0.99"]]
    assert len(rows) == 3
    without, kept = ([float(row[column]) for row in rows] for column in (2, 3))
    assert f"at most {max(kept):.1%} of 500 draws".replace("%", " %") in PROSE
    assert f"in {min(without):.0%} to {max(without):.0%}".replace("%", "", 1)[:-1] in PROSE


@pytest.mark.parametrize("point", POINTS)
def test_the_table_of_the_demo_page_is_the_stored_one(point):
    page = (ROOT / "docs" / "start" / "demo.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {re.escape(point)} \|.*$", page, re.MULTILINE)
    assert row is not None
    cells = [cell.strip() for cell in row[0].strip("|").split("|")]
    stored = POINTS[point]
    assert cells[3] == f"{stored['accuracy']:.3f}"
    assert cells[4] == "{:.3f} to {:.3f}".format(*stored["interval"])
    assert cells[5:7] == [f"{stored['layers_mean']:.2f}", f"{stored['layer_speedup']:.2f}x"]
    assert cells[7] == f"{stored['latency_p50']:.1f} ms"
    assert cells[8] == f"{stored['latency_p95']:.1f} ms"
    assert cells[9] == f"{stored['latency_ratio']:.2f}x"
