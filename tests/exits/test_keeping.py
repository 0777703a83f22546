"""Controllers: they hold a speed on rows of another kind, the same way however rows are batched."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exits.traces import coherent_trace, random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy, calibrate, replay
from de3bert.exits.keeping import Keeper, KeepRule
from de3bert.exits.signals.parse import Signal

LINE = "keep(mean=3.0, along=5.0:0.1/3.0:0.4/1.5:0.9, rate=0.01, every=8) entropy"


def rule() -> KeepRule:
    found = Policy.parse(LINE).rule
    assert isinstance(found, KeepRule)
    return found


def test_its_line_reads_back():
    assert str(Policy.parse(LINE)) == LINE
    assert Policy.parse(str(Policy.parse(LINE))) == Policy.parse(LINE)
    short = Policy.parse("keep(mean=3, along=5:0.1/2:0.9) edr(lambda=2.0) x 2").rule
    assert isinstance(short, KeepRule)
    assert (short.every, short.rate, short.count) == (16, 0.005, 2)
    assert Policy.parse(str(short)).needs_distances


def test_thresholds_lie_on_the_curve_and_stop_at_its_ends():
    found = [rule().threshold_at(layers) for layers in (9.0, 5.0, 4.0, 3.0, 2.25, 1.5, 0.0)]
    assert found == pytest.approx([0.1, 0.1, 0.25, 0.4, 0.65, 0.9, 0.9])


def test_moves_by_hand():
    """First block: gain 1. Five layers instead of three: two fewer are asked for, within reach."""
    keeper = rule().fresh((1, 2, 3, 4, 5, 6))
    keeper.learn([5] * 7)
    assert keeper.position == 3.0  # the block is not full
    keeper.learn([5])
    assert keeper.position == 1.5  # 3 + 1 (3 - 5) = 1, and the curve ends at 1.5
    assert keeper.present.threshold == pytest.approx(0.9)
    keeper.learn([1] * 8)
    assert keeper.position == pytest.approx(2.5)  # 1.5 + (3 - 1) / 2
    for _ in range(30):
        keeper.learn([3] * 8)
    keeper.learn([2] * 8)
    assert keeper.position == pytest.approx(2.58)  # the gain has come down to rate x every


def test_more_rows_than_the_block_has_room_for_are_a_mistake():
    with pytest.raises(ValueError, match="changes after 8"):
        rule().fresh((1, 2)).learn([1] * 9)


def shifted(seed: int = 3):
    """Rows that all exits are less sure of than of those that were calibrated on."""
    return coherent_trace(rows=3000, sure=0.5, seed=seed)


def speedup(trace, answers, rows=slice(None)):
    return trace.base / answers.exit_layers[rows].mean()


@pytest.mark.parametrize("family", ["entropy", "edr(lambda=1.0)", "max_probability", "entropy x 2"])
@pytest.mark.parametrize("ratio", [1.5, 2.5])
def test_the_speed_is_kept_where_a_fixed_threshold_loses_it(family, ratio):
    calibration, other = coherent_trace(rows=1500), shifted()
    fixed = calibrate(calibration, f"layers={ratio}", name="x", family=family).policy
    kept = calibrate(calibration, f"layers={ratio} keep agree=0.5", name="x", family=family).policy
    lost = speedup(other, replay(other, fixed))
    assert lost < 0.95 * ratio
    answers = replay(other, kept)
    assert speedup(other, answers, slice(500)) == pytest.approx(ratio, rel=0.05)
    assert speedup(other, answers, slice(500, None)) == pytest.approx(ratio, rel=0.05)


def test_it_never_leaves_the_floor():
    calibration, other = coherent_trace(rows=1500), shifted()
    kept = calibrate(calibration, "layers=2.0 keep agree=0.97", name="x", family="entropy").policy
    assert isinstance(kept.rule, KeepRule)
    loosest = Policy.parse(f"entropy < {kept.rule.along[-1][1]!r}")
    answers = replay(calibration, loosest)
    assert (answers.labels == calibration.predictions[:, -1]).mean() >= 0.97 - 1e-9
    assert speedup(other, replay(other, kept)) <= speedup(other, replay(other, loosest)) + 1e-9


def test_within_thresholds():
    trace = random_trace(rows=800)
    kept = calibrate(trace, "layers=1.5 keep within=0.2:0.9", name="x", family="entropy").policy
    assert isinstance(kept.rule, KeepRule)
    assert all(0.2 <= threshold <= 0.9 for _, threshold in kept.rule.along)
    with pytest.raises(De3Error, match=r"the thresholds 0\.9 to 0\.95 allow"):
        calibrate(trace, "layers=1.1 keep within=0.9:0.95", name="x", family="entropy")


def test_a_speed_below_the_floor_is_refused_with_what_it_gives():
    with pytest.raises(De3Error, match=r"floor of agreement 0.999 allow.*Its agreement there"):
        calibrate(random_trace(rows=800), "layers=4.0 keep agree=0.999", name="x", family="entropy")


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("bandit", "chooses its thresholds itself"),
        ("patience", "no threshold that could be moved"),
        ("layers", "no threshold that could be moved"),
    ],
)
def test_only_thresholds_can_be_moved(family, reason):
    with pytest.raises(UsageError, match=reason):
        calibrate(random_trace(), "layers=1.2 keep", name="x", family=family)


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_however_rows_come_the_threshold_is_the_same(sizes):
    """Rows in parts of any size, cut where the threshold moves, are replayed as a whole."""
    trace = shifted().take(slice(400))
    policy = Policy(rule_for(trace))
    whole = replay(trace, policy)
    keeper = policy.rule.fresh(trace.exit_layers)  # type: ignore[attr-defined]
    start, found = 0, []
    for size in [*sizes, trace.rows]:
        end = min(start + size, trace.rows)
        while start < end:
            block = slice(start, min(start + keeper.room, end))
            part = replay(trace.take(block), Policy(keeper.present))
            keeper.learn(part.exit_layers.tolist())
            found.append(part.exit_layers)
            start = block.stop
    np.testing.assert_array_equal(np.concatenate(found), whole.exit_layers)


def rule_for(trace) -> KeepRule:
    found = calibrate(trace, "layers=1.5 keep agree=0.5", name="x", family="entropy").policy.rule
    assert isinstance(found, KeepRule)
    return found


def test_it_goes_on_where_it_stood():
    trace = shifted()
    keeper = rule_for(trace).fresh(trace.exit_layers)
    for layers in ([3] * 10, [6] * 6, [1] * 5):
        keeper.learn(layers[: keeper.room])
    again = keeper.settings.fresh(trace.exit_layers)
    again.resume(json.loads(json.dumps(keeper.to_json())))
    for each in (keeper, again):
        each.learn([2] * each.room)
        each.learn([4] * each.room)
    assert again.to_json() == keeper.to_json()


@pytest.mark.parametrize(
    "state",
    [
        {}, {"position": "x", "seen": 1, "rows": 1, "layers": 1},
        {"position": 2.0, "seen": 1, "rows": -1, "layers": 1},
        {"position": float("nan"), "seen": 1, "rows": 1, "layers": 1},
        {"position": 2.0, "seen": 20, "rows": 12, "layers": 1},
    ],
)  # fmt: skip
def test_states_of_something_else_are_refused(state):
    with pytest.raises(De3Error, match=r"not the state of a controller|other settings"):
        Keeper(rule()).resume(state)


@pytest.mark.parametrize(
    "line",
    [
        "keep(mean=3, along=5:0.1) entropy",
        "keep(mean=3, along=2:0.1/5:0.2) entropy",
        "keep(mean=3, along=5:0.4/2:0.1) entropy",
        "keep(mean=9, along=5:0.1/2:0.4) entropy",
        "keep(mean=3) entropy",
        "keep(mean=3, along=5:0.1/2:0.4, rate=0) entropy",
        "keep(mean=3, along=5:0.1/2:0.4, every=0.5) entropy",
        "keep(mean=3, along=5:0.1/2:0.4, speed=2) entropy",
        "keep(mean=x, along=5:0.1/2:0.4) entropy",
        "keep(mean=3, along=5/2) entropy",
        "keep(mean=3, along=5:0.1/2:0.4)",
        "keep",
        "keep(mean=3, along=5:0.1/2:0.4) patience",
    ],
)
def test_lines_that_make_no_sense(line):
    with pytest.raises(UsageError):
        Policy.parse(line)


@pytest.mark.parametrize("bandit", ["bandit", "bandit(c=2.0)", "bandit (mu=0.1)"])
def test_a_bandit_cannot_be_given_a_controller(bandit):
    with pytest.raises(UsageError, match="a controller has nothing to move"):
        Policy.parse(f"keep(mean=3, along=5:0.1/2:0.4) {bandit}")


def test_a_controller_cannot_decide_a_batch_alone():
    trace = random_trace(rows=4)
    policy = Policy.parse(LINE)
    with pytest.raises(UsageError, match="cannot decide a batch"):
        policy.step(policy.start(4, (1, 2, 3, 4, 5), 6), trace.view(0))


def test_rising_signals_loosen_downwards():
    with pytest.raises(UsageError, match="ever looser"):
        KeepRule(Signal("max_probability"), mean=3.0, along=((5.0, 0.5), (2.0, 0.9)))
    KeepRule(Signal("max_probability"), mean=3.0, along=((5.0, 0.9), (2.0, 0.5)))
