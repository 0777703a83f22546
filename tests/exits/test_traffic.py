"""Thresholds fitted to unlabelled texts, and what labelled rows say about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import coherent_trace, make_trace, random_trace

from de3bert.errors import UsageError
from de3bert.exits import Policy, calibrate, replay
from de3bert.exits.traffic import traffic_of


def texts(seed: int = 4):
    """Less sure than the rows that are calibrated on, and without labels."""
    return replace(coherent_trace(rows=2000, sure=0.6, seed=seed), labels=None)


@pytest.mark.parametrize("ratio", [1.5, 2.0, 3.0])
def test_the_speed_is_that_of_the_texts(ratio):
    labelled, traffic = coherent_trace(rows=600), texts()
    point = calibrate(labelled, f"layers={ratio}", name="x", traffic=traffic)
    seen = replay(traffic, point.policy)
    assert 6 / seen.exit_layers.mean() == pytest.approx(ratio, rel=0.01)
    assert point.measured["traffic"]["layer_speedup"] == pytest.approx(ratio, rel=0.01)
    assert point.measured["traffic"]["on_calibration"] == point.measured["layer_speedup"]


def test_labels_choose_among_families():
    labelled, traffic = coherent_trace(rows=600), texts()
    point = calibrate(labelled, "layers=2.0", name="x", traffic=traffic, lambdas=(0.0, 1.0, 3.0))
    best = max(
        calibrate(labelled, "layers=2.0", name="x", traffic=traffic, lambdas=(each,)).measured[
            "score"
        ]
        for each in (0.0, 1.0, 3.0)
    )
    assert point.measured["score"] == best


def test_agreement_is_that_of_the_texts():
    labelled, traffic = coherent_trace(rows=600), texts()
    point = calibrate(labelled, "agree=0.9", name="x", traffic=traffic, family="entropy")
    seen = replay(traffic, point.policy)
    assert (seen.labels == traffic.predictions[:, -1]).mean() >= 0.9


def test_texts_alone_will_do():
    point = calibrate(texts(), "layers=2.0", name="x")
    assert point.measured["metric"] == "agreement"
    with pytest.raises(UsageError, match="have no labels"):
        calibrate(texts(), "accuracy=0.8", name="x")


def by_exit(exits: list[int], right: list[bool]):
    """Rows that leave at these exits (0 or 1) under `entropy < 0.5`, right there or not."""
    logits = np.zeros((len(exits), 2, 2))
    for row, (leaves, good) in enumerate(zip(exits, right, strict=True)):
        logits[row, :, 0 if good else 1] = 9.0
        if leaves == 1:
            logits[row, 0] = 0.0
    return make_trace(logits, np.zeros(len(exits), dtype=int))


def test_the_estimate_weighs_exits_as_the_traffic_does():
    """Right in 3 of 4 at the first exit, in 1 of 2 at the second; the traffic leaves half and half.

    0.5 x 3/4 + 0.5 x 1/2 = 0.625, where the labelled rows have 4 of 6.
    """
    labelled = by_exit([0, 0, 0, 0, 1, 1], [True, True, True, False, True, False])
    traffic = replace(by_exit([0, 0, 1, 1], [True] * 4), labels=None)
    found = traffic_of(Policy.parse("entropy < 0.5"), traffic, labelled)
    assert found.score == pytest.approx(0.625)
    assert found.shift == pytest.approx(abs(4 / 6 - 1 / 2))
    # weights 3/4 on four rows, 3/2 on two: (3 + 3)^2 / (4 x 9/16 + 2 x 9/4)
    assert found.effective_rows == pytest.approx(36 / 6.75)
    low, high = found.interval or (0, 0)
    assert low < 0.625 < high


def test_exits_that_no_labelled_row_takes_give_no_estimate():
    labelled = by_exit([0] * 6, [True] * 6)
    traffic = replace(by_exit([0, 1], [True] * 2), labels=None)
    found = traffic_of(Policy.parse("entropy < 0.5"), traffic, labelled)
    assert found.score is None
    assert found.shift == pytest.approx(0.5)


def test_the_estimate_is_near_the_truth_where_only_the_mix_changes():
    """Easy and hard texts in other shares: the assumption holds, and so does the estimate."""
    rng = np.random.default_rng(0)
    easy, hard = random_trace(4000, noise=0.2, seed=1), random_trace(4000, noise=0.9, seed=2)

    def mix(share, rows):
        which = rng.random(rows) < share
        parts = [(easy if each else hard).take([index]) for index, each in enumerate(which)]
        logits = np.concatenate([part.logits for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        return make_trace(logits, labels)

    labelled, traffic = mix(0.8, 2000), mix(0.3, 2000)
    policy = calibrate(labelled, "layers=2.0", name="x", traffic=traffic, family="entropy").policy
    found = traffic_of(policy, replace(traffic, labels=None), labelled)
    truth = float((replay(traffic, policy).labels == traffic.labels).mean())
    alike = float((replay(labelled, policy).labels == labelled.labels).mean())
    assert abs((found.score or 0) - truth) < abs(alike - truth)
