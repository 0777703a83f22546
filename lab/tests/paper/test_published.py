"""The published numbers: sums, averages and facts that can be checked by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from de3lab.analysis import ANALYSES
from de3lab.analysis.speed import PAPER, PAPER_CORRELATIONS, PAPER_ROWS
from de3lab.paper.items import ITEMS
from de3lab.paper.published import METRICS, score_rows

TABLES = ("methods", "dar-forms", "distillation", "backbone")


def mean_score(cell):
    return np.mean([cell[metric] for metric in METRICS if metric in cell])


def rows_with_average():
    for name in TABLES:
        for speed, rows in ITEMS[name].published.items():
            for method, row in rows.items():
                if "average" in row:
                    yield pytest.param(row, id=f"{name}-{speed}-{method}")


@pytest.mark.parametrize("row", list(rows_with_average()))
def test_averages_are_those_of_the_row(row):
    """AVG is the mean over tasks, where F1 and accuracy of a task enter by their mean."""
    cells = [cell for cell in row.values() if isinstance(cell, dict)]
    assert np.mean([mean_score(cell) for cell in cells]) == pytest.approx(row["average"], abs=0.051)


def test_how_many_rows_the_tables_have():
    sizes = {
        name: {speed: len(rows) for speed, rows in ITEMS[name].published.items()} for name in TABLES
    }
    assert sizes == {
        "methods": {"1": 1, "2": 10, "3": 9},
        "dar-forms": {"1": 1, "2": 4, "3": 4},
        "distillation": {"2": 5},
        "backbone": {"1": 1, "3": 5},
    }


def test_tables_that_repeat_each_other_agree():
    """The table of DAR forms repeats rows of the main one, that of students repeats DE3's at 2x."""
    report = {name: ITEMS[name].published for name in TABLES}
    for speed in ("1", "2", "3"):
        for method, row in report["dar-forms"][speed].items():
            if method in report["methods"][speed]:
                assert row == report["methods"][speed][method]
    main = report["methods"]["2"]["de3"]
    for task, cell in report["distillation"]["2"]["de3"].items():
        if isinstance(cell, dict):
            assert cell["accuracy"] == main[task]["accuracy"]


def test_gains_that_the_text_of_the_paper_names():
    """DE3 is above PCEE-BERT by 1.1 and 1.5 points on average."""
    report = ITEMS["methods"].published
    gains = [report[s]["de3"]["average"] - report[s]["pcee"]["average"] for s in ("2", "3")]
    assert gains == pytest.approx([1.1, 1.5])


def test_speed_table():
    _, layers, seconds, teraflops = (list(column) for column in zip(*PAPER, strict=True))
    assert len(PAPER) == 16
    assert layers[0] == 12 * PAPER_ROWS  # a threshold of 0 stops nobody
    assert layers[-1] == PAPER_ROWS  # and 1 everybody at once
    assert sorted(layers, reverse=True) == layers
    time = np.corrcoef(layers, seconds)[0, 1]
    assert time == pytest.approx(PAPER_CORRELATIONS["seconds"], abs=0.005)
    flops = np.corrcoef(layers, teraflops)[0, 1]
    assert flops == pytest.approx(PAPER_CORRELATIONS["flops"], abs=0.01)


def test_cells_of_a_table():
    """Accuracy, F1 alone, both; with and without a layer speed-up; nothing."""
    (row,) = score_rows("""
               a         b         c          d    e
        2 x X  90.1@2.02 f80.5     71.2/89.4  -    60.0 82.6
    """)["2"].values()
    assert row == {
        "name": "X",
        "a": {"accuracy": 90.1, "speed": 2.02},
        "b": {"f1": 80.5},
        "c": {"f1": 71.2, "accuracy": 89.4},
        "e": {"accuracy": 60.0},
        "average": 82.6,
    }


def test_analyses_name_the_figure_they_are_for():
    for item in ITEMS.values():
        if item.measurement is not None:
            named = ANALYSES[item.measurement.analysis].paper.replace("Tables IX and X", "Table IX")
            assert named == (item.beside or item.references[0]), item.name
