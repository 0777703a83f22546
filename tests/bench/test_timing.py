"""Times in turn, and what may be said about their ratios."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from tests.bench.fakes import Fake, Time

from de3bert.bench.answers import Reference, find_reference
from de3bert.bench.measure import BATCH_SIZES, best_batch_size, measure
from de3bert.bench.report import contender_rows
from de3bert.bench.timing import Interval, alternate, bootstrap, over_rounds, settle
from de3bert.tasks import TASKS

MODEL = SimpleNamespace(task=TASKS["text-classification"], label_names=("neg", "pos"))
TEXTS = ["a" * length for length in (1, 2, 3, 5, 8, 13, 21, 34)]


def test_every_job_takes_every_item_before_the_next_comes():
    time, seen = Time(), []
    costs = {"slow": 2.0, "quick": 0.5}

    def job(name):
        def run(item):
            seen.append((item, name))
            time.pass_by(costs[name] * (item + 1))

        return run

    jobs = {name: job(name) for name in costs}
    times = alternate(jobs, 5, 3, pools=dict.fromkeys(costs, "one"), clock=time.clock)
    for name, cost in costs.items():
        expected = np.repeat(cost * np.arange(1, 6)[:, None], 3, axis=1)
        np.testing.assert_allclose(times[name], expected)
    assert [item for item, _ in seen] == [item for _ in range(3) for item in range(5) for _ in "ab"]
    pairs = [tuple(name for _, name in seen[at : at + 2]) for at in range(0, len(seen), 2)]
    assert set(pairs) == {("slow", "quick"), ("quick", "slow")}
    assert time.slept == [0.002] * 2 + [0.003] * 29  # it settles once, and then pauses


def test_the_order_of_turns_is_that_of_the_seed():
    def order(seed):
        seen: list[str] = []
        jobs = {name: lambda _, name=name: seen.append(name) for name in "abcd"}
        alternate(jobs, 6, 1, pools=dict.fromkeys(jobs, "one"), seed=seed, clock=Time().clock)
        return seen

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_nobody_starts_while_another_pool_spins():
    """Pools of 50 ms and 10 ms; a job with a core less would take ten times as long."""
    time = Time()
    left_by = {"ort": 0.05, "ours": 0.05, "hf": 0.01}
    pools = {"ort": "a", "ours": "a", "hf": "b"}
    spinning, seen = "", []

    def job(name):
        def run(_):
            nonlocal spinning
            seen.append(name)
            disturbed = time.now < time.spins_until and spinning != pools[name]
            time.pass_by(10.0 if disturbed else 1.0)
            time.spin(left_by[name])
            spinning = pools[name]

        return run

    jobs = {name: job(name) for name in pools}
    times = alternate(jobs, 20, 1, pools=pools, clock=time.clock)
    for found in times.values():
        np.testing.assert_allclose(found, 1.0)
    # Those of one pool come together, in either order, and the pools too.
    rounds = {tuple(seen[at : at + 3]) for at in range(0, len(seen), 3)}
    assert rounds == {("ort", "ours", "hf"), ("ours", "ort", "hf"), ("hf", "ort", "ours"),
                      ("hf", "ours", "ort")}  # fmt: skip


def test_a_process_that_never_rests_is_not_waited_for_without_end():
    time = Time()
    time.spin(1e9)
    settle(time.clock)
    assert time.now == pytest.approx(1.0)


def test_a_constant_ratio_has_no_width():
    ours = np.random.default_rng(0).uniform(1, 9, (40, 3))
    for statistic in (np.mean, np.median):
        found = bootstrap(2.5 * ours, ours, statistic)
        assert (found.value, found.low, found.high) == pytest.approx((2.5, 2.5, 2.5))


def test_bootstrap_resamples_items_in_pairs():
    """Against a plain loop that draws the same items for both sides."""
    rng = np.random.default_rng(3)
    ours = rng.uniform(1, 2, (25, 2))
    theirs = ours * rng.uniform(1.5, 2.5, (25, 1))
    found = bootstrap(theirs, ours, np.median, resamples=500, seed=7)
    draws, ratios = np.random.default_rng(7), []
    for _ in range(10):
        for draw in draws.integers(0, 25, (50, 25)):
            ratios.append(np.median(theirs[draw]) / np.median(ours[draw]))
    low, high = np.percentile(ratios, [2.5, 97.5])
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.low < found.value == pytest.approx(np.median(theirs) / np.median(ours))


def test_the_interval_holds_the_truth_as_often_as_it_says():
    hits = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        ours = rng.lognormal(0.0, 0.3, (60, 1))
        theirs = 2.0 * ours * rng.lognormal(0.0, 0.2, (60, 1)) / np.exp(0.02)
        found = bootstrap(theirs, ours, np.mean, resamples=400, seed=seed)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 2.0 <= found.high
    assert hits >= 87


def test_rounds_give_students_interval():
    """Two values, one degree of freedom: t = 12.706."""
    found = over_rounds(np.array([1.0, np.e]))
    assert found.value == pytest.approx(np.exp(0.5))
    assert found.high == pytest.approx(np.exp(0.5 + 12.7062 * np.sqrt(0.5) / np.sqrt(2)), rel=1e-4)
    assert over_rounds(np.array([3.0])) == Interval(pytest.approx(3.0), None, None)
    assert str(over_rounds(np.array([3.0]))) == "3.00"


def test_the_best_batch_size_is_where_the_list_takes_least():
    time = Time()
    # What a batch costs is saved by large ones; without such a cost all sizes are alike.
    assert best_batch_size(Fake("a", time, 0.01, per_batch=0.5), TEXTS * 8, time.clock) == 64
    assert best_batch_size(Fake("b", time, 0.01), TEXTS[:1], time.clock) == 1
    assert set(BATCH_SIZES) == {1, 8, 16, 32, 64}


def test_known_times_come_out_as_ratios():
    time = Time()
    slow = Fake("hf", time, 0.04)
    quick = Fake("ort", time, 0.01)
    measured = measure([slow, quick], TEXTS, 3, clock=time.clock)
    reference = find_reference(measured, MODEL, TEXTS)
    first, second = contender_rows(measured, ["hf"], reference, [("pos",)] * 7 + [("neg",)])
    assert first["latency_ms"]["mean"] == pytest.approx(40 * np.mean([len(t) for t in TEXTS]))
    assert first["tokenising_ms"]["p50"] == pytest.approx(1.0)
    assert first["accuracy"] == pytest.approx(7 / 8)
    assert first["against"] == {}
    for kind in ("mean", "median", "throughput"):
        assert second["against"]["hf"][kind]["value"] == pytest.approx(4.0)
    rate = len(TEXTS) / (0.01 * sum(map(len, TEXTS)))
    assert second["texts_per_second"]["value"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [({}, False), ({"precision": "int8"}, None), ({"full_depth": False}, None)],
)
def test_other_answers_are_flagged_where_there_is_no_excuse(changes, verdict):
    time = Time()
    right, wrong = Fake("hf", time, 0.04), Fake("ort", time, 0.01, label="neg", **changes)
    measured = measure([right, wrong], TEXTS, 1, clock=time.clock)
    reference = Reference("hf", MODEL.task, MODEL.label_names, [("pos",)] * len(TEXTS))
    rows = contender_rows(measured, ["hf"], reference, None)
    assert [row["answers_ok"] for row in rows] == [True, verdict]
    assert [row["same_answers"] for row in rows] == [1.0, 0.0]
    assert reference.warning(measured[0]) is None
    said = reference.warning(measured[1])
    assert (said is None) == (verdict is None)
    assert said is None or "8 of 8" in said
