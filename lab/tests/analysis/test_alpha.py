"""Score over alpha: which alpha a model has, ranges over alpha, spread between runs, mistakes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lab.tests.analysis.saved import saved
from tests.exits.traces import random_trace

from de3bert.errors import UsageError
from de3bert.exits import Trace, curve
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.alpha import alpha_of, measure_alpha

ANALYSIS = ANALYSES["alpha"]
SETTINGS = dict(ANALYSIS.settings)


def alike(count: int) -> list[Trace]:
    """Traces of different runs on the same rows."""
    labels = random_trace().labels
    return [replace(random_trace(seed=seed), labels=labels) for seed in range(count)]


def trained(folder, trace, alpha, label="de3", **options):
    return saved(folder, trace, label, method_options={"alpha": alpha, **options})


def test_alpha_comes_from_the_model_or_from_the_label(tmp_path):
    trace = random_trace()
    assert alpha_of(trained(tmp_path, trace, 0.01)) == 0.01
    assert alpha_of(saved(tmp_path, trace, "0.001")) == 0.001
    assert alpha_of(trained(tmp_path, trace, 0.01, label="1e-2")) == 0.01


@pytest.mark.parametrize("label", ["de3", "nan", "-0.1", "inf"])
def test_an_unknown_alpha_asks_for_a_label(tmp_path, label):
    subject = saved(tmp_path, random_trace(), label)
    with pytest.raises(
        UsageError, match=r"does not say which alpha .* Give it as the label: 0\.01"
    ):
        alpha_of(subject)


def test_a_label_must_not_contradict_the_model(tmp_path):
    subject = trained(tmp_path, random_trace(), 0.1, label="0.01")
    with pytest.raises(UsageError, match=r"trained with alpha 0\.1, and its label says 0\.01"):
        alpha_of(subject)


def test_scores_ranges_and_order(tmp_path):
    traces = alike(3)
    given = (0.1, 1e-4, 0.01)
    subjects = [trained(tmp_path, t, alpha) for t, alpha in zip(traces, given, strict=True)]
    numbers = measure_alpha(subjects, {**SETTINGS, "lambdas": [2.0], "speeds": [1.5, 3.0]})
    assert numbers["alphas"] == [1e-4, 0.01, 0.1]
    assert numbers["runs"] == [1, 1, 1]
    for each in numbers["by_speed"]:
        slow = {
            alpha: curve(trace, "edr(lambda=2.0)").at(each["speed"])
            for alpha, trace in zip(given, traces, strict=True)
        }
        assert {score["alpha"]: score["mean"] for score in each["scores"]} == slow
        assert each["range"] == pytest.approx(max(slow.values()) - min(slow.values()))
        assert each["below_limit"] == (each["range"] < 0.01)
        assert slow[each["best_alpha"]] == max(slow.values())
        assert each["run_sd"] is None
    assert numbers["below_limit"] == all(each["below_limit"] for each in numbers["by_speed"])


def test_equal_models_are_below_the_limit_and_others_are_not(tmp_path):
    good = random_trace(noise=0.3)
    bad = replace(random_trace(noise=3.0), labels=good.labels)
    same = [trained(tmp_path, good, alpha) for alpha in (0.01, 0.1)]
    assert measure_alpha(same, SETTINGS)["below_limit"] is True
    other = [trained(tmp_path, good, 0.01), trained(tmp_path, bad, 0.1)]
    numbers = measure_alpha(other, SETTINGS)
    assert numbers["below_limit"] is False
    assert min(each["range"] for each in numbers["by_speed"]) > 0.1


def test_runs_of_one_alpha_are_averaged_and_their_spread_is_pooled(tmp_path):
    traces = alike(5)
    alphas = (0.1, 0.1, 0.1, 0.01, 0.01)
    subjects = [trained(tmp_path, t, a) for t, a in zip(traces, alphas, strict=True)]
    numbers = measure_alpha(subjects, {**SETTINGS, "speeds": [2.0]})
    scores = [curve(trace, "edr(lambda=1.0)").at(2.0) for trace in traces]
    found = numbers["by_speed"][0]
    assert numbers["runs"] == [2, 3]
    assert [each["values"] for each in found["scores"]] == [scores[3:], scores[:3]]
    means = [np.mean(scores[3:]), np.mean(scores[:3])]
    assert found["range"] == pytest.approx(abs(means[0] - means[1]))
    squares = sum((score - means[1]) ** 2 for score in scores[:3])
    squares += sum((score - means[0]) ** 2 for score in scores[3:])
    assert found["run_sd"] == pytest.approx((squares / 3) ** 0.5)


def test_lambda_is_the_first_models_own_unless_it_is_given(tmp_path):
    subjects = [
        trained(tmp_path, trace, alpha, **{"lambda": 2.0})
        for trace, alpha in zip(alike(2), (0.1, 0.01), strict=True)
    ]
    assert measure_alpha(subjects, SETTINGS)["lambda"] == 2.0
    assert measure_alpha(subjects, {**SETTINGS, "lambdas": [0.5]})["lambda"] == 0.5


def test_the_numbers_alone_make_tables_and_figures(tmp_path):
    alphas = (0.1, 0.1, 0.01)
    subjects = [trained(tmp_path, t, a) for t, a in zip(alike(3), alphas, strict=True)]
    document = analyse("alpha", subjects, {}, "de3 analyze alpha")
    numbers = json.loads(json.dumps(document.numbers, allow_nan=False))
    assert numbers == document.numbers
    (table,) = ANALYSIS.tables(numbers)
    assert table.columns[1:3] == ("alpha 0.01", "alpha 0.1")
    assert "±" in table.rows[0][2]
    assert "±" not in table.rows[0][1]
    assert "1 to 2 runs per alpha" in table.note
    ANALYSIS.draw(tmp_path / "figure.png", numbers)
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_what_does_not_compare(tmp_path):
    first = trained(tmp_path, random_trace(), 0.1)
    with pytest.raises(UsageError, match=r"different alpha; all 2 given here have alpha 0\.1"):
        measure_alpha([first, trained(tmp_path, random_trace(seed=1), 0.1)], SETTINGS)
    with pytest.raises(UsageError, match=r"takes one --lambda, got 2: 1, 2"):
        measure_alpha([first], {**SETTINGS, "lambdas": [1.0, 2.0]})
    bare = trained(tmp_path, replace(random_trace(), distances=None), 0.01)
    with pytest.raises(UsageError, match="no distances to prototypes"):
        measure_alpha([first, bare], SETTINGS)
    other = trained(tmp_path, random_trace(exits=4), 0.01)
    with pytest.raises(UsageError, match="runs with the same exits"):
        measure_alpha([first, other], SETTINGS)
