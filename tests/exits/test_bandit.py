"""A threshold learned on the way: what is played, what is gained, and what is never looked at."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits import slow
from tests.exits.traces import make_trace, random_trace, small_traces

from de3bert.errors import UsageError
from de3bert.exits import ExitView, Policy, calibrate, curve, replay
from de3bert.exits.bandit import Bandit
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.family import MUS, Family
from de3bert.exits.replay import exit_indices, margin

STREAM = [
    [0.6, 0.8, 0.85, 0.9],
    [0.75, 0.7, 0.9, 0.95],
    [0.55, 0.6, 0.7, 0.8],
    [0.92, 0.95, 0.97, 0.99],
    [0.65, 0.72, 0.8, 0.97],
]


def of_confidences(table, **changes):
    """A trace of two classes whose exits have just these confidences."""
    sure = np.asarray(table, dtype=np.float64)
    logits = np.stack([np.log(sure / (1 - sure)), np.zeros_like(sure)], axis=-1)
    return make_trace(logits, np.zeros(len(sure), dtype=int), **changes)


def slow_bandit(trace, arms, c, mu, overheads=None):
    """Line by line after the definition: arms and exits of all rows, and the sums at the end."""
    table = [[max(slow.softmax(exit_)) for exit_ in row] for row in trace.logits.tolist()]
    rewards = {arm: [] for arm in range(len(arms))}
    played, left = [], []
    for row, seen in enumerate(table):
        fresh = [arm for arm in rewards if not rewards[arm]]
        if fresh:
            arm = fresh[0]
        else:
            time = row + 1
            values = [
                sum(got) / len(got) + c * math.sqrt(math.log(time) / len(got))
                for got in rewards.values()
            ]
            arm = min(a for a, value in enumerate(values) if value >= max(values) - 1e-6)
        exit_ = 0
        while exit_ < len(seen) - 1 and seen[exit_] < arms[arm] - 1e-12:
            exit_ += 1
        shares = overheads or [layer / trace.depth for layer in trace.exit_layers]
        rewards[arm].append(0.0 if exit_ == 0 else seen[exit_] - seen[0] - mu * shares[exit_])
        played.append(arm)
        left.append(exit_)
    return played, left, [sum(got) / len(got) if got else 0.0 for got in rewards.values()]


def test_the_stream_of_the_fact_sheet():
    bandit = Bandit((0.5, 0.7, 0.9), (0, 0.4, 0.8, 1.2), c=1.0, mu=0.1)
    played, exits, rewards = [], [], []
    for time, seen in enumerate(STREAM, start=1):
        if time == 4:
            assert bandit.bounds() == pytest.approx([1.177410, 1.177410, 1.307410], abs=5e-7)
        arm = bandit.choose()
        left = next((n for n in range(3) if seen[n] >= bandit.arms[arm]), 3)
        rewards.append(bandit.learn(arm, left, seen[0], seen[left]))
        played.append(arm)
        exits.append(left + 1)
    assert (played, exits) == ([0, 1, 2, 2, 0], [1, 1, 4, 1, 1])
    assert rewards == pytest.approx([0, 0, 0.13, 0, 0])
    assert bandit.gains == pytest.approx([0, 0, 0.065])
    assert bandit.plays == [2, 1, 2]


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(0.5, 0.7, 0.9), (0.6,), (0.4, 0.45, 0.8, 1.0)]),
    st.sampled_from([0.0, 0.3, 2.0]),
    st.sampled_from([0.0, 0.05, 0.5]),
)
def test_replay_is_the_definition(seed, arms, c, mu):
    trace = replace(random_trace(rows=40, exits=4, seed=seed), exit_layers=(2, 3, 7, 12))
    _, left, _ = slow_bandit(trace, arms, c, mu)
    assert exit_indices(trace, Policy(BanditRule(arms, c, mu))).tolist() == left


def test_answers_are_those_of_the_exits_taken():
    trace = random_trace(rows=60)
    found = replay(trace, Policy.parse("bandit"))
    index = exit_indices(trace, Policy.parse("bandit"))
    assert found.exit_index.tolist() == index.tolist()
    assert len(set(index.tolist())) >= 3
    assert found.labels.tolist() == trace.predictions[np.arange(60), index].tolist()


def test_rows_are_taken_in_order_and_the_order_matters():
    trace = random_trace(rows=60)
    policy = Policy.parse("bandit(c=0.1)")
    forth = exit_indices(trace, policy)
    assert exit_indices(trace.take(slice(25)), policy).tolist() == forth[:25].tolist()
    back = exit_indices(trace.take(np.arange(60)[::-1]), policy)[::-1]
    assert back.tolist() != forth.tolist()


@settings(max_examples=60, deadline=None)
@given(small_traces(), st.integers(0, 100))
def test_nothing_behind_the_exit_taken_is_looked_at(trace, seed):
    policy = Policy.parse("bandit(arms=0.4/0.6/0.9, c=0.5)")
    index = exit_indices(trace, policy)
    logits = trace.logits.copy()
    hidden = np.arange(trace.exits) > index[:, None]
    logits[hidden] = np.random.default_rng(seed).normal(size=(int(hidden.sum()), trace.classes)) * 9
    assert exit_indices(replace(trace, logits=logits), policy).tolist() == index.tolist()


def test_the_comparison_is_not_strict():
    trace = of_confidences([[0.5, 0.9]] * 2)  # 0.5 exactly: equal logits
    assert exit_indices(trace, Policy.parse("bandit(arms=0.5/1.0)")).tolist() == [0, 1]


def test_a_trial_leaves_and_notes_the_first_exit():
    bandit = Bandit((0.5, 0.9), (0.5, 1.0), c=1.0, mu=0.1)
    bandit.learn(0, 0, 0.7, 0.7)
    policy = Policy(bandit.trial())
    state = policy.start(1, (1, 2), 3)
    trace = of_confidences([[0.7, 0.95, 0.6]])
    assert policy.step(state, trace.view(0))[0].tolist() == [False]
    assert policy.step(state, trace.view(1))[0].tolist() == [True]
    assert policy.rule.first == pytest.approx(0.7)
    assert (policy.rule.number, str(bandit.present)) == (1, "max_probability >= 0.9")
    assert bandit.plays == [1, 0]  # asking is not playing
    even = Policy(Bandit((0.5,), (1.0,), c=1.0, mu=0.1).trial())
    assert even.step(state, of_confidences([[0.5, 0.9]]).view(0))[0].tolist() == [True]
    with pytest.raises(ValueError, match="one row"):
        Policy(bandit.trial()).step(policy.start(2, (1,), 2), random_trace(rows=2).view(0))


def test_a_batch_cannot_be_decided():
    policy = Policy.parse("bandit")
    view = ExitView(1, np.zeros((2, 2)))
    with pytest.raises(UsageError, match=r"learns from each row.*one by one"):
        policy.step(policy.start(2, (1,), 2), view)


def test_rounding_breaks_no_tie():
    bandit = Bandit((0.5, 0.7, 0.9), (0.5, 1.0), c=2.0, mu=0.0)
    bandit.learn(0, 1, 0.5, 0.7)
    bandit.learn(1, 1, 0.5, 0.7 + 1e-8)
    bandit.learn(2, 1, 0.5, 0.6)
    assert bandit.choose() == 0


def test_only_a_bandit_is_sequential():
    assert Policy.parse("bandit").sequential
    for line in ("entropy < 0.2", "patience(2)", "layer(2)", "full", "oracle"):
        assert not Policy.parse(line).sequential


DEFAULT = "bandit(arms=0.5:1.0:0.1, c=2.0, mu=0.1)"


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("bandit", DEFAULT),
        ("bandit()", DEFAULT),
        (" bandit( mu=.1 ,arms=0.5:1:0.1 ) ", DEFAULT),
        ("bandit(arms=0.5/0.6/0.7/0.8/0.9/1.0)", DEFAULT),
        ("bandit(arms=0.5:1.0:0.05, c=1)", "bandit(arms=0.5:1.0:0.05, c=1.0, mu=0.1)"),
        ("bandit(arms=0.5/0.7/0.95)", "bandit(arms=0.5/0.7/0.95, c=2.0, mu=0.1)"),
        ("bandit(arms=0.5/0.7/0.9)", "bandit(arms=0.5:0.9:0.2, c=2.0, mu=0.1)"),
        ("bandit(arms=0.8)", "bandit(arms=0.8, c=2.0, mu=0.1)"),
        ("bandit(arms=0.3:0.9:0.6, mu=0)", "bandit(arms=0.3/0.9, c=2.0, mu=0.0)"),
    ],
)
def test_read_and_print(line, printed):
    policy = Policy.parse(line)
    assert str(policy) == printed
    assert Policy.parse(printed) == policy
    assert Policy.from_json(policy.to_json()) == policy
    assert hash(policy) == hash(Policy.parse(printed))


def test_ranges_have_both_ends_and_no_rounding_dust():
    assert Policy.parse("bandit").rule.arms == (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert BanditRule([0.5, 1], 2, 0) == Policy.parse("bandit(arms=0.5/1.0, mu=0)").rule


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bandit(0.5)", r'Cannot read "0\.5".*`bandit\(arms='),
        ("bandit(arm=0.5)", 'Cannot read "arm=0.5"'),
        ("bandit(c=1, c=2)", 'Cannot read "c=2"'),
        ("bandit(c=two)", '"two".*not a number'),
        ("bandit(arms=)", "not a number"),
        ("bandit(arms=0.5:1.0)", 'arms "0.5:1.0"'),
        ("bandit(arms=0.9:0.5:0.1)", "Cannot read the arms"),
        ("bandit(arms=0.5:1.0:0.3)", "whole steps"),
        ("bandit(arms=0.5:1.0:1e-9)", "at most 1000"),
        ("bandit(arms=0.7/0.5)", "increasing"),
        ("bandit(arms=0.5/1.5)", "at most 1"),
        ("bandit(arms=0.0/0.5)", "above 0"),
        ("bandit(arms=nan)", "increasing"),
        ("bandit(mu=-1)", "mu of `bandit` must be finite and >= 0"),
        ("bandit(c=inf)", "c of `bandit` must be finite"),
        ("bandid", 'Did you mean "bandit"'),
    ],
)
def test_what_cannot_be_read(line, message):
    with pytest.raises(UsageError, match=message):
        Policy.parse(line)


@pytest.mark.parametrize(
    ("text", "printed", "mus"),
    [
        ("bandit", "bandit(arms=0.5:1.0:0.1, c=2.0)", MUS),
        ("bandit(arms=0.5/0.9)", "bandit(arms=0.5/0.9, c=2.0)", MUS),
        ("bandit(mu=0.3)", "bandit(arms=0.5:1.0:0.1, c=2.0, mu=0.3)", (0.3,)),
    ],
)
def test_a_family_leaves_mu_open_unless_it_is_given(text, printed, mus):
    family = Family.parse(text)
    assert (str(family), family.mus, family.kind) == (printed, mus, "bandit")
    assert Family.parse(printed) == family
    assert family.policy(0.2).rule == replace(family.bandit, mu=0.2)
    assert Family("bandit") == Family.parse("bandit")
    with pytest.raises(UsageError, match="goes with a signal"):
        Family.of(family, 2)


def test_one_bandit_is_one_point_and_the_family_has_one_for_each_mu():
    trace = random_trace(rows=150)
    alone = curve(trace, "bandit(mu=0.1)")
    assert (len(alone), str(alone.policy(0))) == (1, DEFAULT)
    found = curve(trace, "bandit")
    assert sorted(found.thresholds.tolist()) == list(MUS)
    assert (np.diff(found.layers_mean) <= 0).all()
    assert found.layers_mean[0] > found.layers_mean[-1]
    at = found.thresholds.tolist().index(0.1)
    assert (found.layers_mean[at], found.score[at]) == (alone.layers_mean[0], alone.score[0])


def test_sorting_by_layers_keeps_points_together():
    trace = random_trace(rows=150)
    costs = np.random.default_rng(0).uniform(1, 9, (trace.rows, trace.exits))
    found = curve(trace, "bandit(c=0.1)", costs=costs)
    assert found.thresholds.tolist() != sorted(found.thresholds.tolist())
    for index in range(len(found)):
        answer = replay(trace, found.policy(index))
        assert answer.exit_layers.mean() == pytest.approx(found.layers_mean[index])
        assert (answer.labels == trace.labels).mean() == pytest.approx(found.score[index])
        spent = costs[np.arange(trace.rows), answer.exit_index].mean()
        assert spent == pytest.approx(found.milliseconds[index])


def test_a_bandit_is_calibrated_over_mu():
    trace = random_trace(rows=150)
    found = curve(trace, "bandit")
    goal = float(found.layer_speedup[len(found) // 2])
    made = calibrate(trace, f"layers={goal}", name="b", family="bandit")
    assert isinstance(made.policy.rule, BanditRule)
    assert made.measured["layer_speedup"] >= goal - 1e-9


def test_a_model_with_one_exit_has_nothing_to_explore():
    trace = make_trace(np.zeros((3, 1, 2)), [0, 1, 1], exit_layers=(12,))
    assert replay(trace, Policy.parse("bandit")).exit_layers.tolist() == [12, 12, 12]


def test_a_bandit_has_no_margin():
    assert np.isinf(margin(random_trace(rows=5), Policy.parse("bandit"))).all()
