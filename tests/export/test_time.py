"""Profiles, time targets, placement and time curves on a real bundle, function and verb."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.cli.conftest import de3

import de3bert
from de3bert.data.read import read_table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import CostModel, TimeSample, Trace
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.profile import known_profile, profile, read_profile, write_profile
from de3bert.runtime.timed import time_curve

__all__ = ["de3"]

LAYER, TEST, FIXED = 1.0, 0.1, 0.5


def made_up(weights: str | None) -> CostModel:
    """A machine on which a layer takes 1 ms, a test 0.1 ms, and everything else 0.5 ms."""
    samples = [
        TimeSample(1, tokens, layers, tests, FIXED + LAYER * layers + TEST * tests)
        for tokens in (8, 64)
        for layers, tests in ((1, 0), (4, 0), (4, 3))
    ]
    return CostModel.fit(samples, info={"weights": weights})


@pytest.fixture
def profiled(bundle_copy):
    write_profile(bundle_copy, made_up(de3bert.load(bundle_copy).weights_sha256))
    return bundle_copy


@pytest.fixture
def trace(profiled, toy_data, tmp_path):
    path = tmp_path / "calibration.trace"
    trace_table(de3bert.load(profiled), read_table(toy_data.calibration)).save(path)
    return path


def test_a_profile_has_all_lengths_and_batches_and_comes_back_from_disk(bundle_copy):
    classifier = de3bert.load(bundle_copy)
    limit = classifier.info.max_length
    cost = profile(classifier, batches=(4,), lengths=(8, 16, 9999), rounds=3)
    assert sorted(cost.batches) == [1, 4]
    assert cost.batches[4].tokens == (8, 16, limit)
    assert cost.milliseconds(16, 4, 3) > cost.milliseconds(16, 1, 0) > 0
    assert cost.info["weights"] == classifier.weights_sha256
    write_profile(bundle_copy, cost)
    assert known_profile(bundle_copy) == cost
    assert de3bert.load(bundle_copy).predict(["a film"])  # the manifest does not mind the new file


def test_a_profile_of_other_weights_is_refused(bundle_copy):
    write_profile(bundle_copy, made_up("somebody else's"))
    with pytest.raises(De3Error, match="other weights"):
        known_profile(bundle_copy)


def test_a_damaged_profile_is_named(bundle_copy):
    (bundle_copy / "profile.json").write_text("{", encoding="utf-8")
    with pytest.raises(De3Error, match=r"profile.json is damaged"):
        read_profile(bundle_copy)


@pytest.mark.parametrize("bad", [{"rounds": 2}, {"batches": (0,)}, {"lengths": (0,)}])
def test_profiles_of_nothing_are_refused(bundle_copy, bad):
    with pytest.raises(UsageError):
        profile(de3bert.load(bundle_copy), **bad)


def test_time_targets_are_met_by_the_profile(profiled, trace):
    depth = Trace.load(trace).depth
    full = FIXED + LAYER * depth
    wanted = full * 0.7
    point = calibrate_model(profiled, f"latency={wanted:.3f}ms", "quick", trace=trace)
    assert point.measured["predicted_ms"] <= wanted + 1e-6
    ratio = calibrate_model(profiled, "speedup=1.4", "ratio", trace=trace)
    assert ratio.measured["predicted_time_speedup"] >= 1.4 - 1e-9
    assert set(de3bert.load(profiled).points) >= {"quick", "ratio"}


def test_time_targets_need_a_profile(bundle_copy, trace):
    (bundle_copy / "profile.json").unlink(missing_ok=True)
    with pytest.raises(UsageError, match="de3 profile"):
        calibrate_model(bundle_copy, "latency=8ms", "quick", trace=trace)


def test_the_verbs_of_time(de3, profiled, trace, toy_data, tmp_path):
    placed = de3("place-exits", profiled, "--trace", trace, "--target", "drop=5%", "--json")
    assert placed.code == 0, placed.err
    assert placed.json["predicted_ms"] <= placed.json["full_ms"] + 1e-9
    picture = tmp_path / "time.png"
    drawn = de3("curve", trace, "--profile", profiled, "--measure", toy_data.test, "--plot",
                picture, "--json")  # fmt: skip
    assert drawn.code == 0, drawn.err
    assert picture.stat().st_size > 10_000
    assert drawn.json["timed"]
    assert all(point["measured_ms"] > 0 < point["predicted_ms"] for point in drawn.json["timed"])
    assert "milliseconds" in drawn.json["curves"][0]


def test_profile_verb_writes_into_the_folder(de3, bundle_copy):
    said = de3("profile", bundle_copy, "--batches", "2", "--lengths", "8,16", "--rounds", "3",
               "--json")  # fmt: skip
    assert said.code == 0, said.err
    stored = json.loads((bundle_copy / "profile.json").read_text(encoding="utf-8"))
    assert said.json["batches"] == stored["batches"]


def test_mistakes_with_time(de3, bundle_copy, trace, toy_data):
    (bundle_copy / "profile.json").unlink(missing_ok=True)
    for arguments in (
        ("place-exits", bundle_copy, "--trace", trace),
        ("curve", trace, "--profile", bundle_copy),
        ("calibrate", bundle_copy, "--trace", trace, "--target", "speedup=2", "--name", "x"),
    ):
        said = de3(*arguments)
        assert (said.code, "de3 profile" in said.err) == (2, True), said.err
    assert de3("curve", trace, "--measure", toy_data.test).code == 2
    assert de3("profile", bundle_copy, "--batches", "one").code == 2


def test_timed_points_lie_on_the_curve(profiled, trace, toy_data):
    from de3bert.exits.trade_off import trade_off

    line = trade_off([trace], cost=known_profile(profiled)).lines[0]
    texts = read_table(toy_data.test).inputs()[:5]
    points = time_curve(de3bert.load(profiled), texts, line.curve, count=3)
    assert 2 <= len(points) <= 3
    for point in points:
        near = np.isclose(line.curve.layer_speedup, point.layer_speedup)
        assert point.score in line.curve.score[near]
    with pytest.raises(UsageError, match="no texts"):
        time_curve(de3bert.load(profiled), [], line.curve)


def test_the_card_of_a_bundle_speaks_of_the_bundle(trained_bundle, pointed_model):
    card = (trained_bundle / "README.md").read_text(encoding="utf-8")
    assert "without torch" in card
    assert "recipe.toml" not in card
    assert "recipe.toml" in (pointed_model / "README.md").read_text(encoding="utf-8")
