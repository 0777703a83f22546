"""All exit rules on one model."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lab.tests.analysis.toys import subject, toy_trace
from tests.exits import slow

from de3bert.errors import UsageError
from de3bert.exits.curve import curve
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.strategies import families_for

STRATEGIES = ANALYSES["strategies"]
LOGITS_ONLY = ["entropy", "energy", "entropy, 2 in a row", "patience", "bandit"]


def asked(one, **settings):
    return analyse("strategies", [one], settings, "").numbers


@pytest.fixture
def numbers(tmp_path):
    return asked(subject(tmp_path, "t", toy_trace(), label="de3"), lambdas=[2.0, 1.0])


def test_rules_follow_from_what_the_trace_has():
    trace = toy_trace()
    bare = replace(trace, distances=None, certainty=None)
    assert list(families_for(bare, [1.0])) == [*LOGITS_ONLY, "fixed depth"]
    router = replace(trace, distances=None)
    assert list(families_for(router, [1.0])) == [*LOGITS_ONLY, "router's certainty", "fixed depth"]
    both = replace(trace, certainty=None)
    assert list(families_for(both, [0.5, 2.0])) == [
        "EDR (λ = 0.5)", "EDR (λ = 2)", "distance ratio", *LOGITS_ONLY, "fixed depth"
    ]  # fmt: skip
    three = replace(toy_trace(classes=3), distances=None, certainty=None)
    assert list(families_for(three, []))[:2] == ["entropy", "highest probability"]


def test_the_rule_left_out_for_two_classes_is_that_of_entropy():
    trace = toy_trace(rows=200)
    one, other = curve(trace, "entropy"), curve(trace, "max_probability")
    np.testing.assert_array_equal(one.layers_mean, other.layers_mean)
    np.testing.assert_array_equal(one.score, other.score)


def test_scores_areas_and_curves(numbers):
    trace = toy_trace()
    assert numbers["speeds"] == [1.5, 2.0, 2.5, 3.0, 4.0]
    assert numbers["area_over"] == [1.5, 4.0]
    assert len(numbers["strategies"]) == 10
    for each in numbers["strategies"]:
        whole = curve(trace, each["family"])
        low, high = whole.layer_speedup[0], whole.layer_speedup[-1]
        for key, score in each["at"].items():
            assert score == (whole.at(float(key)) if low <= float(key) <= high else None)
        assert each["area"] == (whole.area(1.5, 4.0) if low <= 1.5 and high >= 4.0 else None)
        assert len(each["curve"]["score"]) <= 200
        assert each["curve"]["score"][-1] == pytest.approx(whole.score[-1], abs=1e-6)
    areas = {each["name"]: each["area"] for each in numbers["strategies"]}
    assert areas["patience"] is None
    assert areas["EDR (λ = 2)"] is not None


def test_full_model_and_oracle(numbers):
    trace = toy_trace()
    full, oracle = numbers["points"]
    last = slow.outcome(trace, [5] * 120)[1]
    assert (full["name"], full["layer_speedup"], full["score"]) == ("full model", 1.0, last / 120)
    exits = [
        slow.oracle_exit(answers, label)
        for answers, label in zip(trace.predictions.tolist(), trace.known_labels, strict=True)
    ]
    layers, right = slow.outcome(trace, exits)
    assert oracle["layer_speedup"] == pytest.approx(6 * 120 / layers)
    assert oracle["score"] == pytest.approx(right / 120)
    for each in numbers["strategies"]:
        assert max(each["curve"]["score"]) <= oracle["score"] + 1e-6


def test_lambda_is_the_models_own(tmp_path):
    one = subject(tmp_path, "t", toy_trace(), method_options={"lambda": 3})
    assert asked(one)["strategies"][0]["family"] == "edr(lambda=3.0)"


def test_one_speed_has_no_area(tmp_path):
    numbers = asked(subject(tmp_path, "t", toy_trace()), speeds=[2.0], metric="macro_f1")
    assert numbers["area_over"] is None
    assert {each["area"] for each in numbers["strategies"]} == {None}
    assert numbers["strategies"][0]["at"]["2"] == curve(toy_trace(), "edr", "macro_f1").at(2.0)


def test_a_cut_model_is_measured_by_its_backbone(tmp_path):
    numbers = asked(subject(tmp_path, "t", replace(toy_trace(), base_depth=12)))
    assert numbers["points"][0]["layer_speedup"] == 2.0
    assert numbers["speeds"] == [2.0, 2.5, 3.0, 4.0]


def test_tables_and_figure_from_stored_numbers(numbers, tmp_path):
    stored = json.loads(json.dumps(numbers, allow_nan=False))
    rules, points = STRATEGIES.tables(stored)
    assert rules.columns == (
        "exit rule", "1.5x", "2x", "2.5x", "3x", "4x", "mean 1.5x to 4x"
    )  # fmt: skip
    shown = {row[0]: row[1:] for row in rules.cells()}
    assert shown["patience"][-1] == "-"
    assert shown["entropy"][0] == f"{curve(toy_trace(), 'entropy').at(1.5):.4f}"
    assert "n = 120" in rules.note
    assert "two classes" in rules.note
    assert [row[0] for row in points.rows] == ["full model", "oracle"]
    assert "No rule scores above it, but others may be faster" in points.note
    STRATEGIES.draw(tmp_path / "f.svg", stored)
    drawn = (tmp_path / "f.svg").read_text(encoding="utf-8")
    bound = "oracle (bounds the score, not speed)"
    for words in (bound, "full model", "fixed depth", "EDR (λ = 2)", "accuracy (n = 120)"):
        assert f"<!-- {words} -->" in drawn


def test_bad_input(tmp_path):
    single = toy_trace(exits=1)
    with pytest.raises(UsageError, match=r"one\.trace has one exit"):
        asked(subject(tmp_path, "one", replace(single, distances=None, certainty=None)))
    one = subject(tmp_path, "t", toy_trace())
    with pytest.raises(UsageError, match="lambda of edr must be finite"):
        asked(one, lambdas=[-0.5])
    with pytest.raises(UsageError, match="out of reach"):
        asked(one, speeds=[0.5])
    with pytest.raises(UsageError, match=r"f1 is for 2 classes"):
        asked(subject(tmp_path, "three", toy_trace(classes=3)), metric="f1")
    two = [subject(tmp_path, name, toy_trace(), label="de3") for name in "xy"]
    with pytest.raises(UsageError, match="looks at one run of de3, got 2"):
        analyse("strategies", two, {}, "")
