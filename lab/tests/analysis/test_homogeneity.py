"""Do entropy and distance ratio say the same: correlations, their intervals, and mistakes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.tests.analysis.saved import saved
from tests.exits.slow import distance_ratio, entropy
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import UsageError
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.homogeneity import measure_homogeneity
from de3lab.statistics import difference_interval, spearman, spearman_interval

ANALYSIS = ANALYSES["homogeneity"]
SETTINGS = dict(ANALYSIS.settings)


def slow_ranks(values) -> list[float]:
    """1 for the lowest; equal ones share the mean of their ranks."""
    return [sum(v < x for v in values) + (1 + sum(v == x for v in values)) / 2 for x in values]


def slow_spearman(first, second) -> float:
    """Pearson's correlation of the ranks."""
    a, b = np.array(slow_ranks(first)), np.array(slow_ranks(second))
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()))


def test_every_layer_is_that_of_the_slow_way(tmp_path):
    trace = random_trace(rows=60)
    numbers = measure_homogeneity([saved(tmp_path, trace)], SETTINGS)
    assert numbers["layers"] == [2]
    (kind,) = numbers["kinds"]
    assert (kind["label"], kind["method"], kind["runs"]) == ("de3", "de3", 1)
    for number, each in enumerate(kind["layers"]):
        local = [entropy(row.tolist()) for row in trace.logits[:, number].astype(float)]
        ratio = [
            distance_ratio(logits.tolist(), distances.tolist())
            for logits, distances in zip(
                trace.logits[:, number].astype(float),
                trace.distances[:, number].astype(float),
                strict=True,
            )
        ]
        assert each["layer"] == number + 1
        assert each["mean"] == pytest.approx(slow_spearman(local, ratio), abs=1e-9)
        assert (each["low"], each["high"]) == spearman_interval(each["mean"], 60)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=15).filter(
        lambda rows: all(len(set(column)) > 1 for column in zip(*rows, strict=True))
    )
)
def test_ties_share_their_ranks(rows):
    first, second = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    assert spearman(first, second) == pytest.approx(slow_spearman(first, second), abs=1e-9)


def test_the_interval_by_hand():
    """atanh 0.5 = 0.549306; 1.959964 sqrt(1.125 / 97) = 0.211074."""
    low, high = spearman_interval(0.5, 100)
    assert low == pytest.approx(math.tanh(0.338232), abs=1e-5)
    assert high == pytest.approx(math.tanh(0.760380), abs=1e-5)
    assert spearman_interval(-0.5, 100) == pytest.approx((-high, -low))
    assert spearman_interval(1.0, 100) == (1.0, 1.0)
    assert spearman_interval(-1.0, 100) == (-1.0, -1.0)


def test_the_interval_holds_as_often_as_it_says():
    """Of normal pairs with correlation r, Spearman's is 6 / pi asin(r / 2)."""
    chance = np.random.default_rng(0)
    truth, inside = 6 / math.pi * math.asin(0.6 / 2), 0
    for _ in range(400):
        first = chance.normal(size=80)
        second = 0.6 * first + 0.8 * chance.normal(size=80)
        rho = spearman(first, second)
        assert rho is not None
        low, high = spearman_interval(rho, 80)
        inside += low <= truth <= high
    assert 0.92 <= inside / 400 <= 0.98


def test_the_interval_of_a_difference():
    first = {"mean": 0.5, "low": 0.4, "high": 0.58}
    second = {"mean": 0.2, "low": 0.1, "high": 0.32}
    low, high = difference_interval(first, second)
    assert low == pytest.approx(0.3 - math.hypot(0.1, 0.12))
    assert high == pytest.approx(0.3 + math.hypot(0.08, 0.1))
    turned = difference_interval(second, first)
    assert turned == pytest.approx((-high, -low))


def test_kinds_are_compared_with_the_first(tmp_path):
    trace = random_trace(classes=2)
    # The distance to the predicted class follows the entropy: a ratio that says the same.
    local = np.array([[entropy(row.tolist()) for row in rows] for rows in trace.logits[:, :-1]])
    predicted = np.argmax(trace.logits[:, :-1], axis=-1)
    copied = np.where(np.eye(2)[predicted] > 0, local[..., None] + 0.01, 1.5)
    subjects = [
        saved(tmp_path, trace, "with PN"),
        saved(tmp_path, replace(trace, distances=copied), "w/o PN"),
    ]
    numbers = measure_homogeneity(subjects, {"layers": [2, 3]})
    ours, theirs = numbers["kinds"]
    assert theirs["layers"][1]["mean"] == pytest.approx(1.0, abs=1e-6)
    assert [(each["of"], each["from"], each["layer"]) for each in numbers["differences"]] == [
        ("w/o PN", "with PN", 2),
        ("w/o PN", "with PN", 3),
    ]
    for each, number in zip(numbers["differences"], (1, 2), strict=True):
        gap = theirs["layers"][number]["mean"] - ours["layers"][number]["mean"]
        assert each["mean"] == pytest.approx(gap)
        assert 0 < each["low"] < each["mean"] < each["high"]


def test_runs_are_averaged_and_the_interval_is_over_rows(tmp_path):
    subjects = [saved(tmp_path, random_trace(seed=seed)) for seed in (1, 2, 3)]
    alone = [measure_homogeneity([each], SETTINGS)["kinds"][0]["layers"][1] for each in subjects]
    together = measure_homogeneity(subjects, SETTINGS)["kinds"][0]["layers"][1]
    assert together["values"] == [each["mean"] for each in alone]
    assert together["mean"] == pytest.approx(np.mean(together["values"]))
    assert together["sd"] == pytest.approx(np.std(together["values"], ddof=1))
    assert (together["low"], together["high"]) == spearman_interval(together["mean"], 200)


def test_a_constant_signal_has_no_correlation(tmp_path):
    trace = random_trace()
    same = replace(trace, distances=np.ones_like(trace.distances))
    numbers = measure_homogeneity(
        [saved(tmp_path, trace, "a"), saved(tmp_path, same, "b")], SETTINGS
    )
    each = numbers["kinds"][1]["layers"][1]
    assert (each["mean"], each["low"], each["high"], each["sd"]) == (None,) * 4
    assert each["reason"] == "the distance ratio is the same for all rows"
    assert numbers["differences"][0]["mean"] is None
    table = ANALYSIS.tables(numbers)[0]
    assert table.cells()[1][2] == "-"
    assert "b, layer 2: the distance ratio is the same for all rows." in table.note
    ANALYSIS.draw(tmp_path / "figure.svg", numbers)
    logits = np.tile([1.0, 0.0], (12, 3, 1))
    sure = make_trace(logits, [0, 1] * 6, np.random.default_rng(0).random((12, 2, 2)))
    found = measure_homogeneity([saved(tmp_path, sure)], SETTINGS)["kinds"][0]["layers"][1]
    assert found["reason"] == "the entropy is the same for all rows"


def test_labels_are_not_needed(tmp_path):
    trace = random_trace()
    blind = measure_homogeneity([saved(tmp_path, replace(trace, labels=None))], SETTINGS)
    assert blind["kinds"] == measure_homogeneity([saved(tmp_path, trace)], SETTINGS)["kinds"]


def test_kinds_may_have_different_exits(tmp_path):
    few = replace(random_trace(exits=3), exit_layers=(2, 4, 6))
    subjects = [saved(tmp_path, random_trace(), "all"), saved(tmp_path, few, "few")]
    numbers = measure_homogeneity(subjects, SETTINGS)
    every = ANALYSIS.tables(numbers)[1]
    assert [row[0] for row in every.rows] == ["1", "2", "3", "4", "5"]
    assert [row[2] is None for row in every.rows] == [True, False, True, False, True]
    ANALYSIS.draw(tmp_path / "figure.svg", numbers)
    with pytest.raises(UsageError, match=r"at layer 3\. There are: 2, 4\."):
        measure_homogeneity(subjects, {"layers": [3]})


def test_what_cannot_be_asked(tmp_path):
    trace = random_trace()
    with pytest.raises(UsageError, match="no distances to prototypes"):
        measure_homogeneity([saved(tmp_path, replace(trace, distances=None))], SETTINGS)
    with pytest.raises(UsageError, match=r"needs at least 10 rows, .* has 9"):
        measure_homogeneity([saved(tmp_path, random_trace(rows=9))], SETTINGS)
    measure_homogeneity([saved(tmp_path, random_trace(rows=10))], SETTINGS)
    with pytest.raises(UsageError, match="no exit before the last one at layer 6"):
        measure_homogeneity([saved(tmp_path, trace)], {"layers": [6]})
    shallow = saved(tmp_path, random_trace(exits=2))
    with pytest.raises(UsageError, match=r"at the usual layers \(2\)\. Choose others .*: 1\."):
        measure_homogeneity([shallow], SETTINGS)
    assert measure_homogeneity([shallow], {"layers": [1]})["layers"] == [1]


def test_the_numbers_alone_make_tables_and_figures(tmp_path):
    subjects = [saved(tmp_path, random_trace(seed=seed), f"kind {seed}") for seed in (1, 2)]
    document = analyse("homogeneity", subjects, {}, "de3 analyze homogeneity")
    numbers = json.loads(json.dumps(document.numbers, allow_nan=False))
    assert numbers == document.numbers
    table, every = ANALYSIS.tables(numbers)
    assert [row[0] for row in table.rows] == ["kind 1", "kind 2", "kind 2 less kind 1"]
    assert len(every.rows) == 5
    assert "n = 200 rows" in table.note
    for kind in (".png", ".svg"):
        ANALYSIS.draw(tmp_path / f"figure{kind}", numbers)
        assert (tmp_path / f"figure{kind}").stat().st_size > 5000
