"""The published numbers: sums, averages and facts that can be checked by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from de3lab.analysis import ANALYSES
from de3lab.analysis.costs import PAPER_MINUTES, PAPER_MODULES, PAPER_PARAMETERS
from de3lab.analysis.speed import PAPER
from de3lab.paper.items import ITEMS
from de3lab.paper.published import METRICS, published

TABLES = ("methods", "dar-forms", "distillation", "backbone")


def mean_score(cell):
    return np.mean([cell[metric] for metric in METRICS if metric in cell])


def rows_with_average():
    for name in TABLES:
        for speed, rows in published()[name].items():
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
        name: {speed: len(rows) for speed, rows in published()[name].items()} for name in TABLES
    }
    assert sizes == {
        "methods": {"1": 1, "2": 10, "3": 9},
        "dar-forms": {"1": 1, "2": 4, "3": 4},
        "distillation": {"2": 5},
        "backbone": {"1": 1, "3": 5},
    }


def test_tables_that_repeat_each_other_agree():
    """The table of DAR forms repeats rows of the main one, that of students repeats DE3's at 2x."""
    report = published()
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
    report = published()["methods"]
    gains = [report[s]["de3"]["average"] - report[s]["pcee"]["average"] for s in ("2", "3")]
    assert gains == pytest.approx([1.1, 1.5])


def test_speed_table():
    report = published()["speed"]
    columns = [report[name] for name in ("tau", "layers", "seconds", "teraflops")]
    assert [len(column) for column in columns] == [16] * 4
    assert report["layers"][0] == 12 * report["rows"]  # a threshold of 0 stops nobody
    assert report["layers"][-1] == report["rows"]  # and 1 everybody at once
    assert sorted(report["layers"], reverse=True) == report["layers"]
    time = np.corrcoef(report["layers"], report["seconds"])[0, 1]
    assert time == pytest.approx(report["layers_time"], abs=0.005)
    flops = np.corrcoef(report["layers"], report["teraflops"])[0, 1]
    assert flops == pytest.approx(report["layers_flops"], abs=0.01)


def test_numbers_that_analyses_hold_as_well_are_the_same():
    report = published()
    ours = report["speed"]
    columns = (ours["tau"], ours["layers"], ours["seconds"], ours["teraflops"])
    assert [*zip(*columns, strict=True)] == [*PAPER]
    costs, names = report["costs"], {"full": "BERT-base", "deebert": "DeeBERT", "de3": "DE3-BERT"}
    for method, row in costs["parameters"].items():
        assert {2: row["k2"], 3: row["k3"]} == PAPER_PARAMETERS[names[method]]
    for module, row in costs["flops"].items():
        assert {2: row["k2"], 3: row["k3"]} == PAPER_MODULES[module]
    assert {*costs["flops"]} == {*PAPER_MODULES}
    for method, row in costs["minutes"].items():
        assert [*row.values()] == [*PAPER_MINUTES[names[method]].values()]


def test_analyses_name_the_figure_they_are_for():
    for item in ITEMS.values():
        if item.measured is not None:
            named = ANALYSES[item.measured.analysis].paper.replace("Tables IX and X", "Table IX")
            assert named == (item.beside or item.references[0]), item.name
