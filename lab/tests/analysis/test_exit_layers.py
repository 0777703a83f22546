"""Exit layers at thresholds, against the fact sheet's trace and the slow way."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lab.tests.analysis.toys import subject, toy_trace
from tests.exits import slow
from tests.exits.traces import make_trace

from de3bert.errors import UsageError
from de3bert.exits import Signal
from de3lab.analysis import ANALYSES, analyse

EXITS = ANALYSES["exit-layers"]


def asked(one, **settings):
    return analyse("exit-layers", [one], settings, "de3 analyze").numbers


def left(numbers):
    """Threshold -> the layers at which rows leave."""
    return {
        each["tau"]: {int(layer): rows for layer, rows in each["exits"].items() if rows}
        for each in numbers["thresholds"]
    }


@pytest.fixture
def golden(tmp_path):
    """Four layers, three classes: a row of known entropies and ratios, and it with other names."""
    chances = [[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.9, 0.08, 0.02], [0.9, 0.08, 0.02]]
    near = [[0.6, 0.3, 1.0], [0.2, 0.8, 1.0], [0.1, 0.9, 1.0]]
    turned = [2, 0, 1]
    logits = np.log([chances, np.asarray(chances)[:, turned].tolist()])
    distances = [near, np.asarray(near)[:, turned].tolist()]
    return subject(tmp_path, "golden", make_trace(logits, [0, 1], distances))


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (1.0, {0.0: 4, 0.05: 4, 0.1: 3, 0.2: 3, 0.22: 2, 0.8: 2, 0.9: 1}),
        (1.5, {0.1: 3, 0.2: 2, 0.9: 1}),
        (0.0, {0.25: 4, 0.4: 3, 0.75: 2, 0.9: 2, 1.0: 1}),
    ],
)
def test_golden_exits(golden, weight, expected):
    numbers = asked(golden, family=f"edr(lambda={weight})", tau=list(expected))
    assert left(numbers) == {tau: {layer: 2} for tau, layer in expected.items()}
    for each in numbers["thresholds"]:
        assert each["layer_speedup"] == 4 / expected[each["tau"]]
        assert (each["layers_mean"], each["score"]) == (expected[each["tau"]], 1.0)


def test_the_same_as_row_by_row(tmp_path):
    trace = toy_trace(rows=90, classes=3)
    numbers = asked(subject(tmp_path, "t", trace), tau=[0.2, 0.5, 0.7])
    table = slow.signal_rows(trace, Signal.parse("edr"))
    assert numbers["family"] == "edr(lambda=1.0)"
    for each in numbers["thresholds"]:
        exits = [slow.threshold_exit(row, False, each["tau"], 1) for row in table]
        layers, right = slow.outcome(trace, exits)
        assert each["exits"] == {str(n + 1): exits.count(n) for n in range(6)}
        assert each["layers_mean"] == pytest.approx(layers / 90)
        assert each["score"] == pytest.approx(right / 90)


def test_speeds_refer_to_the_backbone(tmp_path):
    numbers = asked(subject(tmp_path, "cut", replace(toy_trace(), base_depth=12)), tau=[0.0])
    assert numbers["thresholds"][0]["layer_speedup"] == 2.0


def test_a_layer_where_nobody_leaves_is_shown_as_such(tmp_path):
    numbers = asked(subject(tmp_path, "t", toy_trace()), tau=[0.0])
    assert numbers["thresholds"][0]["exits"] == {**{str(n): 0 for n in range(1, 6)}, "6": 120}
    (grid,) = EXITS.tables(json.loads(json.dumps(numbers)))
    assert grid.columns[3:] == ("1", "2", "3", "4", "5", "6")
    assert grid.cells()[0][3:] == ["0.0"] * 5 + ["100.0"]
    EXITS.draw(tmp_path / "f.svg", numbers)
    assert "100" in (tmp_path / "f.svg").read_text(encoding="utf-8")


def test_the_family_fits_the_trace(tmp_path):
    plain = make_trace(np.random.default_rng(0).normal(size=(9, 3, 2)), [0, 1] * 4 + [0])
    assert asked(subject(tmp_path, "plain", plain))["family"] == "entropy"
    numbers = asked(subject(tmp_path, "t", toy_trace()), family="entropy x 2", tau=[0.9])
    assert numbers["family"] == "entropy x 2"
    assert numbers["thresholds"][0]["exits"]["1"] == 0  # two in a row take two exits


@pytest.mark.parametrize("family", ["patience", "layers", "oracle", "bandit"])
def test_families_without_a_threshold(tmp_path, family):
    with pytest.raises(UsageError, match=rf"thresholds of a signal, and `{family}.* has none"):
        asked(subject(tmp_path, "t", toy_trace()), family=family)


def test_no_threshold_at_all(tmp_path):
    with pytest.raises(UsageError, match="at least one threshold"):
        asked(subject(tmp_path, "t", toy_trace()), tau=[])


def test_one_run_only(tmp_path):
    both = [subject(tmp_path, name, toy_trace(), label="de3") for name in ("a", "b")]
    with pytest.raises(UsageError, match=r"looks at one run of de3, got 2: .*a\.trace, .*b\.trace"):
        analyse("exit-layers", both, {}, "")
