"""Score over lambda: exact at every speed, entropy at lambda 0, shapes, trends and mistakes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from lab.tests.analysis.saved import saved
from scipy.stats import spearmanr
from tests.exits.slow import threshold_outcomes
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import UsageError
from de3bert.exits import Signal, curve
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.lambdas import LAMBDAS, measure_lambda, shape_of
from de3lab.statistics import rank_trend

ANALYSIS = ANALYSES["lambda"]
SETTINGS = dict(ANALYSIS.settings)


def test_lambda_0_is_entropy_to_the_last_bit(tmp_path):
    trace = random_trace()
    numbers = measure_lambda([saved(tmp_path, trace)], SETTINGS)
    entropy = curve(trace, "entropy")
    for each in numbers["by_speed"]:
        assert each["scores"][0]["lambda"] == 0
        assert each["scores"][0]["mean"] == entropy.at(each["speed"])


def test_every_score_is_that_of_trying_every_threshold(tmp_path):
    trace = random_trace(rows=30, exits=4, seed=3)
    numbers = measure_lambda(
        [saved(tmp_path, trace)], {**SETTINGS, "lambdas": [0.5, 3.0], "speeds": [1.25, 2.0, 3.5]}
    )
    assert numbers["lambdas"] == [0.0, 0.5, 3.0]
    for k, weight in enumerate(numbers["lambdas"]):
        outcomes = threshold_outcomes(trace, Signal("edr", (("lambda", weight),)), 1)
        layers, right = np.asarray(outcomes)[::-1].T / trace.rows
        for each in numbers["by_speed"]:
            slow = np.interp(trace.depth / each["speed"], layers, right)
            assert each["scores"][k]["mean"] == pytest.approx(slow, abs=1e-12)


def test_best_lambda_and_gain_follow_from_the_scores(tmp_path):
    numbers = measure_lambda([saved(tmp_path, random_trace())], SETTINGS)
    assert numbers["lambdas"] == list(LAMBDAS)
    for each in numbers["by_speed"]:
        means = {score["lambda"]: score["mean"] for score in each["scores"]}
        assert means[each["best_lambda"]] == max(means.values())
        assert each["gain"]["mean"] == pytest.approx(max(means.values()) - means[0.0])
    assert numbers["by_speed"][-1]["gain"]["mean"] > 0.02  # the distances of this trace know more


def test_runs_are_averaged_and_gains_are_paired(tmp_path):
    traces = [random_trace(seed=seed) for seed in (1, 2, 3)]
    labels = traces[0].labels
    traces = [replace(trace, labels=labels) for trace in traces]  # runs on the same rows
    subjects = [saved(tmp_path, trace) for trace in traces]
    numbers = measure_lambda(subjects, {**SETTINGS, "lambdas": [1.0], "speeds": [2.0]})
    ours = [curve(trace, "edr(lambda=1.0)").at(2.0) for trace in traces]
    theirs = [curve(trace, "entropy").at(2.0) for trace in traces]
    found = numbers["by_speed"][0]
    assert numbers["runs"] == 3
    assert found["scores"][1]["values"] == ours
    assert found["scores"][1]["mean"] == pytest.approx(np.mean(ours))
    assert found["scores"][1]["sd"] == pytest.approx(np.std(ours, ddof=1))
    assert found["best_lambda_of_runs"] == [
        1.0 if a > b else 0.0 for a, b in zip(ours, theirs, strict=True)
    ]
    best = ours if found["best_lambda"] else theirs
    assert found["gain"]["values"] == pytest.approx(np.subtract(best, theirs).tolist())


def test_a_distance_ratio_that_says_nothing_changes_nothing(tmp_path):
    trace = random_trace(classes=2)
    same = replace(trace, distances=np.ones_like(trace.distances))  # the ratio is 0.5 everywhere
    numbers = measure_lambda([saved(tmp_path, same)], SETTINGS)
    for each in numbers["by_speed"]:
        assert (each["shape"], each["against"], each["best_lambda"]) == ("flat", 0.0, 0.0)
        assert each["gain"]["mean"] == 0
    assert numbers["trends"]["best_lambda"]["n"] == 0  # where nothing is best nothing grows
    assert numbers["trends"]["best_lambda"]["rho"] is None
    assert numbers["trends"]["gain"]["reason"] == "all values are equal"


@pytest.mark.parametrize(
    ("scores", "shape", "against"),
    [
        ([0.1, 0.3, 0.2], "rise-then-fall", 0.0),
        ([0.1, 0.3, 0.3, 0.2], "rise-then-fall", 0.0),
        ([0.1, 0.2, 0.15, 0.4, 0.1], "rise-then-fall", 0.05),
        ([0.1, 0.4, 0.1, 0.2, 0.3], "rise-then-fall", 0.2),
        ([0.1, 0.2, 0.3], "rise", 0.0),
        ([0.1, 0.3, 0.2, 0.3], "rise", 0.1),
        ([0.3, 0.2, 0.1], "fall", 0.0),
        ([0.3, 0.1, 0.2], "fall", 0.1),
        ([0.3, 0.3, 0.1], "fall", 0.0),
        ([0.2, 0.2, 0.2], "flat", 0.0),
        ([0.2], "flat", 0.0),
    ],
)
def test_shapes(scores, shape, against):
    found = shape_of(scores)
    assert found[0] == shape
    assert found[1] == pytest.approx(against)


def test_the_usual_speeds_are_cut_to_what_is_within_reach(tmp_path):
    three = random_trace(exits=3)
    assert measure_lambda([saved(tmp_path, three)], SETTINGS)["speeds"] == [1.5, 2.0, 2.5, 3.0]
    late = replace(random_trace(exits=3), exit_layers=(4, 8, 12))
    assert measure_lambda([saved(tmp_path, late)], SETTINGS)["speeds"] == [1.5, 2.0, 2.5, 3.0]


def test_speeds_refer_to_the_base(tmp_path):
    cut = replace(random_trace(exits=3), base_depth=12)  # 3 layers of 12: 4x to 12x
    assert measure_lambda([saved(tmp_path, cut)], SETTINGS)["speeds"] == [4.0]


def test_the_numbers_alone_make_tables_and_figures(tmp_path):
    document = analyse("lambda", [saved(tmp_path, random_trace())], {}, "de3 analyze lambda")
    numbers = json.loads(json.dumps(document.numbers, allow_nan=False))
    assert numbers == document.numbers
    over, best = ANALYSIS.tables(numbers)
    assert over.columns == ("lambda", "1.5x", "2x", "2.5x", "3x", "4x")
    assert [row[0] for row in over.rows] == [f"{weight:g}" for weight in LAMBDAS]
    assert over.rows[0][1] == f"{numbers['by_speed'][0]['scores'][0]['mean']:.4f}"
    assert "n = 200 rows" in over.note
    assert "over 5 speeds" in best.note
    assert "so there is no test over them" in best.note  # they are of the same models
    for kind in (".png", ".svg"):
        ANALYSIS.draw(tmp_path / f"figure{kind}", numbers)
        assert (tmp_path / f"figure{kind}").stat().st_size > 5000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"speeds": [2.0, 9.0]}, r"speed-up of 9 is out of reach. .* allow 1 to 6"),
        ({"speeds": [0.5]}, r"speed-up of 0.5 is out of reach"),
        ({"speeds": [float("nan")]}, "speed-up of nan is out of reach"),
        ({"lambdas": [-1.0]}, "lambda of edr must be finite and >= 0"),
        ({"metric": "f1"}, "f1 is for 2 classes"),
    ],
)
def test_settings_that_make_no_sense(tmp_path, changes, words):
    with pytest.raises(UsageError, match=words):
        measure_lambda([saved(tmp_path, random_trace())], {**SETTINGS, **changes})


def test_subjects_that_cannot_be_asked(tmp_path):
    trace = random_trace()
    bare = saved(tmp_path, replace(trace, distances=None), "bare")
    with pytest.raises(UsageError, match="no distances to prototypes"):
        measure_lambda([bare], SETTINGS)
    blind = saved(tmp_path, replace(trace, labels=None), "blind")
    with pytest.raises(UsageError, match="labels"):
        measure_lambda([blind], SETTINGS)
    single = saved(tmp_path, replace(trace, labels=np.zeros(200, dtype=np.int64)), "single")
    with pytest.raises(UsageError, match=r"one class \(class 0\)"):
        measure_lambda([single], SETTINGS)
    slow = make_trace(np.eye(2)[:, None], [0, 1], np.zeros((2, 0, 2)))  # only the final exit
    with pytest.raises(UsageError, match="No usual layer speed-up"):
        measure_lambda([saved(tmp_path, slow)], SETTINGS)


def test_runs_must_be_alike(tmp_path):
    first = saved(tmp_path, random_trace())
    with pytest.raises(UsageError, match="runs with the same exits"):
        measure_lambda([first, saved(tmp_path, random_trace(exits=5))], SETTINGS)
    with pytest.raises(UsageError, match="runs on the same rows"):
        measure_lambda([first, saved(tmp_path, random_trace(rows=150))], SETTINGS)


def test_two_kinds_are_refused(tmp_path):
    subjects = [saved(tmp_path, random_trace(), name) for name in ("de3", "other")]
    with pytest.raises(UsageError, match="`lambda` takes 1 kind of models, got 2"):
        analyse("lambda", subjects, {}, "")


def brute_p(x: list[float], y: list[float]) -> float:
    """The share of orders with at least this rho, one by one."""
    seen = spearmanr(x, y).statistic
    orders = [spearmanr(x, order).statistic for order in permutations(y)]
    return sum(rho >= seen - 1e-9 for rho in orders) / len(orders)


@pytest.mark.parametrize("y", [[1, 2, 3, 4, 5], [1, 3, 2, 5, 4], [0, 0, 2, 1, 1], [5, 4, 3, 2, 1]])
def test_trends_of_few_points_are_exact(y):
    x = [1.5, 2.0, 2.5, 3.0, 4.0]
    found = rank_trend(x, y, "grows")
    assert found["rho"] == pytest.approx(spearmanr(x, y).statistic)
    assert found["p"] == pytest.approx(brute_p(x, y))
    down = rank_trend(x, [-value for value in y], "falls")
    assert (down["rho"], down["p"]) == (pytest.approx(-found["rho"]), found["p"])


def test_a_perfect_trend_of_five_points_is_one_of_120():
    assert rank_trend([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], "grows")["p"] == pytest.approx(1 / 120)


def test_trends_of_many_points_are_scipys():
    x, y = list(range(12)), [3, 1, 2, 5, 4, 6, 9, 8, 7, 12, 10, 11]
    expected = spearmanr(x, y, alternative="greater")
    found = rank_trend(x, y, "grows")
    assert (found["rho"], found["p"]) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1, 2], [1, 2], "a trend needs at least 3 points, there are 2"),
        ([1, 2, 3], [4, 4, 4], "all values are equal"),
    ],
)
def test_no_trend_has_a_reason(x, y, reason):
    found = rank_trend(x, y, "grows")
    assert (found["rho"], found["p"], found["reason"]) == (None, None, reason)
