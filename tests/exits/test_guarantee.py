"""Promises: exact p-values, and violations no more often than stated."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy, calibrate, replay
from de3bert.exits.family import Family
from de3bert.exits.guarantee import (
    difference_p,
    fixed_grid,
    guaranteed,
    rows_needed,
)
from de3bert.exits.points import Target

ENTROPY = [Family.parse("entropy")]


def trinomial(difference: int, rows: int, lose: float, win: float) -> float:
    """P(lost - won <= difference), by going through all outcomes."""
    total = 0.0
    for lost, won in product(range(rows + 1), repeat=2):
        if lost + won <= rows and lost - won <= difference:
            ways = math.comb(rows, lost) * math.comb(rows - lost, won)
            total += ways * lose**lost * win**won * (1 - lose - win) ** (rows - lost - won)
    return total


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (2, 1), (3, 3)])
def test_difference_p_covers_every_chance_to_win_in_its_interval(lost, won):
    rows, bound, share = 15, 0.2, 0.05
    found = difference_p(lost, won, rows, bound, share)
    for win in (won / rows, (won + 1) / rows):  # both lie in any interval for the chance to win
        assert found >= trinomial(lost - won, rows, win + bound, win) - 1e-9


def violations(kind: str, bound: float, confidence: float, family: str, draws: int) -> float:
    """How often a promise is broken in a world where the true risk of every policy is known."""
    world = random_trace(rows=20_000, exits=5, classes=2, seed=1, noise=0.45)
    families = [Family.parse(text) for text in family.split("|")]
    rng = np.random.default_rng(2)
    truth: dict[str, float] = {}
    broken = 0
    for _ in range(draws):
        trace = world.take(rng.choice(world.rows, 600, replace=False))
        try:
            policy, _ = guaranteed(trace, kind, bound, confidence, families)
        except De3Error:
            continue
        if str(policy) not in truth:
            truth[str(policy)] = risk(world, policy, kind)
        broken += truth[str(policy)] > bound
    return broken / draws


def risk(trace, policy, kind):
    said, ends = replay(trace, policy).labels, trace.predictions[:, -1]
    if kind == "agree":
        return float((said != ends).mean())
    wrong = float((said != trace.labels).mean())
    return wrong if kind == "accuracy" else wrong - float((ends != trace.labels).mean())


@pytest.mark.parametrize(
    ("kind", "bound", "family"),
    [
        ("agree", 0.05, "entropy"),
        ("agree", 0.03, "entropy|edr(lambda=1.0)|patience"),
        ("drop", 0.03, "entropy"),
        ("accuracy", 0.16, "max_probability"),
        ("agree", 0.05, "raw_energy"),
        ("agree", 0.05, "certainty"),
        ("agree", 0.05, "entropy x 2"),
    ],
)
def test_promises_are_broken_no_more_often_than_stated(kind, bound, family):
    draws, confidence = 150, 0.9
    allowed = binom.ppf(0.999, draws, 1 - confidence) / draws
    assert violations(kind, bound, confidence, family, draws) <= allowed


def test_without_a_promise_the_bound_is_broken_about_half_of_the_time():
    """The same simulation, with points that only meet the target on calibration rows."""
    world = random_trace(rows=20_000, exits=5, classes=2, seed=1, noise=0.45)
    rng = np.random.default_rng(2)
    broken = 0
    for _ in range(60):
        trace = world.take(rng.choice(world.rows, 600, replace=False))
        policy = calibrate(trace, "agree=0.95", name="x", family="entropy").policy
        broken += risk(world, policy, "agree") > 0.05
    assert broken > 20


def test_the_promise_says_what_it_rests_on():
    trace = random_trace(rows=800, noise=0.3, classes=2)
    policy, promise = guaranteed(trace, "agree", 0.05, 0.95, ENTROPY)
    seen = replay(trace, policy)
    assert promise.seen == pytest.approx(risk(trace, policy, "agree"))
    assert promise.p_value == pytest.approx(binom.cdf(round(promise.seen * 800), 800, 0.05))
    assert promise.p_value <= 0.05
    assert promise.layer_speedup == pytest.approx(6 / seen.exit_layers.mean())
    assert promise.without >= promise.layer_speedup
    assert "0.95" in str(promise)


def test_thresholds_are_tested_as_replay_runs_them():
    """Losses and layers of the whole grid at once equal a replay of each threshold."""
    from de3bert.exits.guarantee import _candidates, _losses

    trace = random_trace(rows=60)
    lost, won = _losses(trace, "drop")
    for text in ("entropy", "max_probability", "edr(lambda=1.0) x 2", "raw_energy"):
        family = Family.parse(text)
        found = _candidates(trace, family, lost, won, True)
        for index in range(0, len(found.numbers), 97):
            answer = replay(trace, family.policy(float(found.numbers[index])))
            rows = np.arange(60)
            assert found.layers[index] == answer.exit_layers.sum()
            assert found.lost[index] == lost[rows, answer.exit_index].sum()
            assert found.won[index] == won[rows, answer.exit_index].sum()


def test_the_grid_goes_from_nobody_leaves_to_all_do():
    trace = random_trace(rows=300)
    for text in ("entropy", "max_probability", "raw_energy", "certainty"):
        family = Family.parse(text)
        grid = fixed_grid(family)
        first, last = (replay(trace, family.policy(float(each))) for each in (grid[0], grid[-1]))
        assert (first.exit_layers == 6).mean() > 0.99
        assert (last.exit_layers == 1).mean() > 0.99


def test_too_few_rows_say_how_many_it_takes():
    trace = random_trace(rows=100)
    with pytest.raises(De3Error, match=r"100 rows are too few.*from 299 rows on \(199 more\)"):
        guaranteed(trace, "agree", 0.01, 0.95, ENTROPY)
    assert rows_needed(0.0, 0.01, 0.05) == 299
    with pytest.raises(De3Error, match=r"nearest promise is a risk of 0\.0295"):
        guaranteed(trace, "agree", 0.01, 0.95, ENTROPY)


def test_a_model_whose_exits_disagree_says_how_near_it_comes():
    logits = np.zeros((400, 2, 2))
    logits[:, 0, 0], logits[:, 1, 1] = 3.0, 3.0  # the first exit is sure, and always differs
    with pytest.raises(De3Error, match="loses 400 of them; it would take a larger bound"):
        guaranteed(make_trace(logits), "agree", 0.05, 0.95, ENTROPY)


def test_full_depth_that_is_too_often_wrong():
    trace = random_trace(rows=500, noise=3.0)
    with pytest.raises(De3Error, match="Full depth itself is wrong in"):
        guaranteed(trace, "accuracy", 0.01, 0.95, ENTROPY)


@pytest.mark.parametrize("text", ["bandit", "oracle"])
def test_nothing_is_promised_of_policies_that_learn_or_read_labels(text):
    with pytest.raises(UsageError, match="Nothing can be promised"):
        guaranteed(random_trace(), "agree", 0.05, 0.95, [Family.parse(text)])


def test_a_bound_of_nothing_cannot_be_promised():
    with pytest.raises(UsageError, match="between 0 and 1"):
        calibrate(random_trace(), "agree=1.0 confidence=0.95", name="x")


def test_calibrate_promises():
    trace = random_trace(rows=800, noise=0.3, classes=2)
    point = calibrate(trace, "agree=0.95 confidence=0.9", name="safe")
    promise = point.measured["guarantee"]
    assert promise["families"] == 2
    assert promise["bound"] == pytest.approx(0.05)
    assert point.target == "agree=0.95 confidence=0.9"
    assert Target.parse(point.target) == Target("agree", 0.95, 0.9)
    assert point.measured["agreement"] >= 0.95
    with pytest.raises(UsageError, match="not one of f1"):
        calibrate(trace, "drop=0.01 confidence=0.9", name="safe", metric="f1")


def test_edr_without_distances_is_written_as_entropy():
    trace = random_trace(rows=200)
    point = calibrate(trace, "layers=2.0", name="x", lambdas=(0.0,))
    assert str(point.policy).startswith("entropy <")
    assert replay(trace, point.policy).exit_layers.mean() == point.measured["layers_mean"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("layers=2 confidence=0.95", "Nothing of `layers` can be promised"),
        ("agree=0.99 confidence=0.3", "confidence is a probability"),
        ("agree=0.99 confidence=x", "confidence is a probability"),
        ("agree=1.5", "agree must be above 0"),
        ("agree=0.99 keep", "Only a ratio of layers can be kept"),
        ("layers=2 agree=0.9", "goes with `keep`"),
        ("layers=2 keep agree=0.9 within=0.1:0.2", "not both"),
        ("layers=2 keep within=0.1", "two thresholds"),
        ("layers=2 kept", 'Cannot read "kept"'),
    ],
)
def test_targets_that_make_no_sense(text, reason):
    with pytest.raises(UsageError, match=reason):
        Target.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "agree=0.99", "agree=0.99 confidence=0.95", "layers=4.0 keep",
        "layers=4.0 keep agree=0.97", "layers=4.0 keep within=0.1:0.6", "full",
    ],
)  # fmt: skip
def test_targets_read_back_as_they_are_written(text):
    assert str(Target.parse(text)) == text
    assert Target.parse(str(Target.parse(text))) == Target.parse(text)


def test_policies_are_not_run_on_labels():
    """Agreement needs none: a trace without labels gives the same promise."""
    trace = random_trace(rows=800, noise=0.3, classes=2)
    blind = trace.take(slice(None))
    object.__setattr__(blind, "labels", None)
    for target in ("agree=0.95", "agree=0.95 confidence=0.9", "layers=2.0"):
        point = calibrate(blind, target, name="x", family="entropy")
        assert point.measured["metric"] == "agreement"
        assert point.measured["score"] == point.measured["agreement"]
        if target != "layers=2.0":
            assert point.policy == calibrate(trace, target, name="x", family="entropy").policy
    with pytest.raises(UsageError, match="have no labels"):
        calibrate(blind, "drop=0.01", name="x")
    assert isinstance(point.policy, Policy)
