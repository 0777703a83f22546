"""Calibration against a search over all points of all curves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import constant_predictions, make_trace, random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Signal, calibrate, curve
from de3bert.exits.calibrate import (
    LAMBDA_GRID,
    PAPER_LAMBDA_GRID,
    WIDE_LAMBDA_GRID,
    families_of,
)
from de3bert.exits.metrics import interval

TRACE = random_trace(rows=300, exits=8, noise=1.0)
FULL = float(TRACE.correct[:, -1].mean())


def all_points(trace=TRACE, lambdas=LAMBDA_GRID):
    """(lambda, layer speed-up, score) of every point of every curve."""
    found = []
    for weight in lambdas:
        each = curve(trace, Signal("edr", (("lambda", weight),)))
        found += zip([weight] * len(each), each.layer_speedup, each.score, strict=True)
    return found


def test_a_layer_target_is_met_with_the_best_lambda():
    point = calibrate(TRACE, "layers=2.0", name="half")
    assert (point.name, point.target) == ("half", "layers=2.0")
    firsts = {}
    for weight, ratio, share in all_points():
        if ratio >= 2.0:
            firsts.setdefault(weight, share)
    weight = dict(point.policy.signal.params)["lambda"]
    assert len(set(firsts.values())) > 1
    assert point.measured["score"] == pytest.approx(max(firsts.values()))
    assert firsts[weight] == pytest.approx(max(firsts.values()))
    assert 2.0 <= point.measured["layer_speedup"] < 2.1


def test_entropy_is_among_what_is_tried():
    """No point is worse on its rows than plain entropy; with the paper's weights it may be."""
    assert list(LAMBDA_GRID) == [0.0, *PAPER_LAMBDA_GRID]
    misled = replace(TRACE, distances=np.ascontiguousarray(TRACE.distances[..., ::-1]))
    entropy = calibrate(misled, "layers=2.0", name="x", family="entropy")
    ours = calibrate(misled, "layers=2.0", name="x")
    paper = calibrate(misled, "layers=2.0", name="x", lambdas=PAPER_LAMBDA_GRID)
    assert paper.measured["score"] < entropy.measured["score"]
    assert ours.policy == entropy.policy  # lambda 0 goes by its own name
    assert str(ours.policy).startswith("entropy < ")


@pytest.mark.parametrize("drop", [0.0, 0.02, 0.1])
def test_a_drop_target_is_the_fastest_within_the_drop(drop):
    point = calibrate(TRACE, f"drop={drop}", name="x")
    expected = max(ratio for _, ratio, share in all_points() if share >= FULL - drop - 1e-9)
    assert point.measured["layer_speedup"] == pytest.approx(expected)
    assert point.measured["score"] >= FULL - drop - 1e-9
    assert point.measured["full_score"] == pytest.approx(FULL)


def test_an_accuracy_target_is_the_fastest_that_reaches_it():
    point = calibrate(TRACE, "accuracy=0.7", name="x")
    expected = max(ratio for _, ratio, share in all_points() if share >= 0.7 - 1e-9)
    assert point.measured["layer_speedup"] == pytest.approx(expected)
    assert point.measured["score"] >= 0.7 - 1e-9


def test_ties_go_to_lambda_one():
    trace = make_trace(
        np.tile([[3.0, 0.0], [3.0, 0.0]], (4, 1, 1)), [0] * 4, np.tile([[0.1, 0.9]], (4, 1, 1))
    )
    for target in ("layers=2.0", "drop=0", "accuracy=1"):
        point = calibrate(trace, target, name="x", lambdas=WIDE_LAMBDA_GRID[::-1])
        assert dict(point.policy.signal.params) == {"lambda": 1.0}
    point = calibrate(trace, "drop=0", name="x", lambdas=(1.5, 0.5))
    assert dict(point.policy.signal.params) == {"lambda": 0.5}


@pytest.mark.parametrize(
    ("family", "start"),
    [
        ("entropy", "entropy < "),
        ("edr(lambda=1.0)", "edr(lambda=1.0) < "),
        ("edr x 2", "edr(lambda="),
        ("max_probability", "max_probability > "),
        ("patience", "patience("),
        ("entropy x 2", "entropy < "),
        ("layers", "layer("),
    ],
)
def test_other_families(family, start):
    point = calibrate(TRACE, "layers=1.5", name="x", family=family)
    assert str(point.policy).startswith(start)
    assert str(point.policy).endswith(" x 2") == family.endswith(" x 2")
    assert point.measured["layer_speedup"] >= 1.5


def test_without_distances_entropy_is_the_default():
    point = calibrate(replace(TRACE, distances=None, certainty=None), "layers=2.0", name="x")
    assert str(point.policy.signal) == "entropy"


def test_several_families_are_tried_together():
    families = families_of(TRACE, ["entropy x 2", "edr", "patience"], (1.0, 2.0))
    printed = ["entropy x 2", "edr(lambda=1.0)", "edr(lambda=2.0)", "patience"]
    assert [str(each) for each in families] == printed
    texts = ["entropy x 2", "entropy x 3", "patience"]
    alone = [calibrate(TRACE, "layers=1.5", name="x", family=text) for text in texts]
    both = calibrate(TRACE, "layers=1.5", name="x", family=texts)
    assert both.measured["score"] == max(each.measured["score"] for each in alone)
    assert both.policy in [each.policy for each in alone]
    # The order in which they are named decides nothing but exact ties.
    again = calibrate(TRACE, "layers=1.5", name="x", family=tuple(reversed(texts)))
    assert again.measured["score"] == both.measured["score"]


def test_there_must_be_a_family():
    with pytest.raises(UsageError, match="no policy family to try"):
        calibrate(TRACE, "layers=1.5", name="x", family=[])
    with pytest.raises(UsageError, match="Unknown policy family"):
        calibrate(TRACE, "layers=1.5", name="x", family=["entropy", "entorpy"])
    with pytest.raises(UsageError, match="needs the labels"):
        calibrate(TRACE, "layers=1.5", name="x", family=["entropy", "oracle"])
    with pytest.raises(UsageError, match="needs distances"):
        calibrate(replace(TRACE, distances=None), "layers=2.0", name="x", family="edr")


def test_full_is_full():
    point = calibrate(TRACE, "full", name="safe")
    assert str(point.policy) == "full"
    assert point.measured["layer_speedup"] == 1.0
    assert point.measured["score"] == point.measured["full_score"]


def test_everything_measured_is_there_and_is_json():
    point = calibrate(TRACE, "layers=2.0", name="half")
    measured = point.measured
    assert set(measured) == {
        *("rows", "metric", "score", "score_interval", "full_score", "layers_mean"),
        *("layer_speedup", "layer_speedup_interval", "exit_histogram"),
        *("agreement", "data", "date"),
    }
    hits = round(measured["score"] * TRACE.rows)
    assert measured["score_interval"] == pytest.approx(interval(hits, TRACE.rows))
    assert sum(measured["exit_histogram"].values()) == measured["rows"] == 300
    assert list(measured["exit_histogram"]) == [str(layer) for layer in range(1, 9)]
    assert measured["layers_mean"] * measured["layer_speedup"] == pytest.approx(8)
    assert measured["data"] == "toy"
    assert OperatingPoint.from_json(json.loads(json.dumps(point.to_json()))) == point


def test_another_metric():
    point = calibrate(TRACE, "accuracy=0.7", name="x", metric="macro_f1")
    assert point.measured["metric"] == "macro_f1"
    assert point.measured["score"] >= 0.7 - 1e-9


def test_layers_out_of_reach_name_the_fastest():
    with pytest.raises(De3Error, match=r"20 times.*fastest is `edr\(.*speed-up of 8\."):
        calibrate(TRACE, "layers=20", name="x")
    with pytest.raises(De3Error, match=r"fastest is `patience\(1\)`"):
        calibrate(TRACE, "layers=8", name="x", family="patience")


def test_accuracy_out_of_reach_names_the_best():
    trace = constant_predictions([1, 1, 1], label=0)
    with pytest.raises(
        De3Error, match=r"accuracy=1\.0.*best is 0, by `entropy < .*speed-up of 3\."
    ):
        calibrate(trace, "accuracy=1", name="x")


def test_requests_that_make_no_sense():
    with pytest.raises(UsageError, match="needs the labels"):
        calibrate(TRACE, "layers=2", name="x", family="oracle")
    with pytest.raises(UsageError, match="at least one lambda"):
        calibrate(TRACE, "layers=2", name="x", lambdas=())
    with pytest.raises(UsageError, match="Accepted"):
        calibrate(TRACE, "speed=2", name="x")
    with pytest.raises(UsageError, match="no labels"):
        calibrate(replace(TRACE, labels=None), "drop=0.01", name="x")
