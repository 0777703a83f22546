"""Scores at a speed: chosen on calibration rows, read on test rows, never beyond reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import make_trace, random_trace

from de3bert.exits import Policy, curve, replay
from de3bert.exits.calibrate import LAMBDA_GRID, PAPER_LAMBDA_GRID
from de3bert.exits.family import Family
from de3bert.exits.metrics import score
from de3bert.exits.temperature import fit_temperatures
from de3lab.study.lines import ScoreLine, speed_grid
from de3lab.study.scoring import exit_scores, score_method, tries_lambda

SPEEDS = [1.0, 1.5, 2.0, 3.0, 6.0, 7.0]


@pytest.fixture(scope="module")
def calibration():
    return random_trace(rows=150, seed=1)


@pytest.fixture(scope="module")
def test():
    return random_trace(rows=170, seed=2)


def scored(name, calibration, test, metrics=("accuracy",), speeds=SPEEDS):
    found = score_method(name, calibration, {"t": test}, list(metrics), speeds)
    return found.model_dump(exclude_unset=True)


def test_lambda_is_chosen_on_calibration_rows_at_every_speed(calibration, test):
    found = scored("de3", calibration, test)
    for key, at in found["tests"]["t"]["at"].items():
        if at is None:
            continue
        speed = float(key)
        tried = {w: curve(calibration, f"edr(lambda={w!r})").at(speed) for w in LAMBDA_GRID}
        best = max(tried.values())
        chosen = found["choices"][key]["family"]
        assert curve(calibration, chosen).at(speed) == best
        assert at["family"] == chosen
        assert at["score"] == curve(test, chosen).at(speed)
    chosen = {found["choices"][key]["family"] for key in ("1.5", "2", "3")}
    on_test = {
        max(LAMBDA_GRID, key=lambda w: curve(test, f"edr(lambda={w!r})").at(s)) for s in (1.5, 2, 3)
    }
    assert chosen != {f"edr(lambda={w!r})" for w in on_test}  # else this test could not fail


def test_entropy_is_tried_unless_the_paper_s_weights_are_asked_for(calibration, test):
    misled = replace(calibration, distances=np.ascontiguousarray(calibration.distances[..., ::-1]))
    found = score_method("de3", misled, {"t": test}, ["accuracy"], [2.0])
    assert found.choices["2"].family == "edr(lambda=0.0)"
    paper = score_method("de3", misled, {"t": test}, ["accuracy"], [2.0], paper_grid=True)
    assert paper.choices["2"].family in {f"edr(lambda={w!r})" for w in PAPER_LAMBDA_GRID}
    assert paper.choices["2"].calibration_score < found.choices["2"].calibration_score
    assert tries_lambda("de3")
    assert not tries_lambda("de3-fitted")  # has weights of its own, with 0
    assert not tries_lambda("joint-entropy")


def test_out_of_reach_there_is_no_score(calibration, test):
    entropy = scored("joint-entropy", calibration, test)
    at = entropy["tests"]["t"]["at"]
    assert at["6"] is not None  # all rows leave at layer 1 of 6
    assert at["7"] is None
    assert entropy["choices"]["7"] is None
    assert entropy["tests"]["t"]["calibrated"]["7"] is None
    assert max(entropy["tests"]["t"]["curve"]["layer_speedup"]) <= 6.0
    # two exits in a row at the earliest at layer 2, four at layer 4: never above 3
    counted = scored("pcee", calibration, test)["tests"]["t"]
    assert counted["at"]["3"]["family"] == "entropy x 2"
    assert counted["at"]["6"] is None


def test_a_speed_that_only_calibration_rows_reach_has_no_score(calibration):
    rng = np.random.default_rng(0)
    restless = make_trace(  # answers change at every exit: patience never leaves early
        np.eye(2)[np.arange(6) % 2][None].repeat(40, 0) * 3, rng.integers(0, 2, 40)
    )
    steady = make_trace(np.eye(2)[np.zeros(6, int)][None].repeat(40, 0) * 3, rng.integers(0, 2, 40))
    assert scored("pabee", steady, steady)["tests"]["t"]["at"]["2"] is not None
    assert scored("pabee", steady, restless)["tests"]["t"]["at"]["2"] is None


def test_between_points_scores_are_linear_in_layers():
    # 10 rows; patience(1) leaves at layer 2, the full model at 3: one wrong, or none
    logits = np.zeros((10, 3, 2))
    logits[:, :, 0] = 2.0
    logits[0, 2] = [0.0, 2.0]
    trace = make_trace(logits, [1] + [0] * 9)
    line = ScoreLine.of(trace, Family.parse("patience"), ["accuracy"])
    assert line.reach == (1.0, 1.5)
    assert line.at(1.2) == pytest.approx(0.95)  # 2.5 layers: half way between 1.0 and 0.9
    assert not line.reaches(1.51)
    assert line.seen(0.99) is None


def test_a_model_of_one_speed_counts_where_it_is_its_own():
    trace = random_trace(exits=1)
    cut = make_trace(trace.logits, trace.labels, exit_layers=(6,), base_depth=12)
    found = scored("full", cut, cut, speeds=[1.5, 1.985, 2.0, 2.015, 2.03])["tests"]["t"]
    assert found["point"]["layer_speedup"] == 2.0
    assert found["curve"] is None
    right = float((trace.predictions[:, 0] == trace.labels).mean())
    assert {key: at and at["score"] for key, at in found["at"].items()} == {
        "1.5": None, "1.985": right, "2": right, "2.015": right, "2.03": None,
    }  # fmt: skip


def test_the_oracle_is_a_point(calibration, test):
    found = scored("oracle", calibration, test)["tests"]["t"]
    assert found["point"]["score"] == float(test.correct.any(1).mean())
    assert found["curve"] is None
    assert found["area"] is None


def test_several_metrics_are_averaged(calibration):
    trace, other = random_trace(classes=2, seed=3), random_trace(classes=2, seed=4)
    found = scored("joint-entropy", trace, other, ["f1", "accuracy"])["tests"]["t"]
    each = {m: curve(other, "entropy", m).at(2.0) for m in ("f1", "accuracy")}
    assert found["at"]["2"]["each"] == each
    assert found["at"]["2"]["score"] == pytest.approx((each["f1"] + each["accuracy"]) / 2)
    last = [score(m, other.labels, other.predictions[:, -1], 2) for m in ("f1", "accuracy")]
    assert found["exit_scores"]["6"] == pytest.approx(np.mean(last))
    assert found["exit_accuracy"]["6"] == last[1]


def test_temperatures_are_fitted_on_calibration_rows_and_used_on_both(calibration, test):
    found = scored("joint-entropy-calibrated", calibration, test)
    fitted = fit_temperatures(calibration)
    assert found["temperatures"] == pytest.approx(list(fitted), abs=1e-5)
    expected = curve(test.tempered(fitted), "entropy").at(2.0)
    assert found["tests"]["t"]["at"]["2"]["score"] == expected
    assert expected != curve(test, "entropy").at(2.0)


def test_the_calibrated_policy_is_measured_on_test_rows(calibration, test):
    found = scored("de3", calibration, test)
    point = found["tests"]["t"]["calibrated"]["2"]
    answer = replay(test, Policy.parse(point["policy"]))
    assert point["policy"] == found["choices"]["2"]["policy"]
    assert point["score"] == float((answer.labels == test.labels).mean())
    assert point["layer_speedup"] == pytest.approx(6 / answer.exit_layers.mean())
    low, high = point["layer_speedup_interval"]
    assert low < point["layer_speedup"] < high
    on_calibration = replay(calibration, Policy.parse(point["policy"]))
    assert 6 / on_calibration.exit_layers.mean() >= 2.0


def test_areas(calibration, test):
    area = scored("joint-entropy", calibration, test)["tests"]["t"]["area"]
    assert area["score"] == curve(test, "entropy").area(1.5, 4.0)
    assert area["whole"]
    counted = scored("pcee", calibration, test)["tests"]["t"]["area"]
    # up to 3 with two in a row; the others cover less and are not asked
    assert (counted["family"], counted["low"], counted["whole"]) == ("entropy x 2", 1.5, False)
    assert counted["high"] == pytest.approx(3.0)


def test_stored_curves_are_small_share_their_speeds_and_hold_those_of_the_table(calibration, test):
    grid = speed_grid(SPEEDS)
    assert len(grid) <= 60
    assert {*SPEEDS} <= {*grid}
    for name in ("joint-entropy", "pabee", "de3"):
        found = scored(name, calibration, test)["tests"]["t"]
        stored = dict(zip(found["curve"]["layer_speedup"], found["curve"]["score"], strict=True))
        assert {*stored} <= {*grid}
        for key, at in found["at"].items():
            assert (at is None) == (float(key) not in stored)
            if at is not None:
                assert stored[float(key)] == pytest.approx(at["score"], abs=1e-6)


def test_exit_scores(test):
    found = exit_scores(test, ["accuracy"])
    assert list(found) == ["1", "2", "3", "4", "5", "6"]
    assert found["3"] == float(test.correct[:, 2].mean())
