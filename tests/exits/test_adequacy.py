"""Rows to calibrate on: which are refused, and what is said of the others."""

from __future__ import annotations

import numpy as np
import pytest
from tests.exits.traces import random_trace

from de3bert.errors import UsageError
from de3bert.exits import OperatingPoint, Policy, Target, calibrate
from de3bert.exits.adequacy import MINIMUM_ROWS, check_rows, doubts, with_warnings
from de3bert.exits.metrics import interval

NAMES = ("bad", "fine", "good")


def labels_of(*counts: int) -> np.ndarray:
    return np.repeat(np.arange(len(counts)), counts)


def test_the_interval_at_the_minimum_is_the_one_that_is_stated():
    low, high = interval(round(0.9 * MINIMUM_ROWS), MINIMUM_ROWS)
    assert (f"{low:.2f}", f"{high:.2f}") == ("0.73", "0.98")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((9, 10, 10), r"29 rows are too few .* at least 30.*0\.73 to 0\.98"),
        ((0, 50, 50), r"none of the class bad \(1 of the model's 3\)"),
        ((0, 0, 50), r"none of the classes bad, fine \(2 of"),
        ((2, 0, 0), r"2 rows are too few.*; the rows have none of the classes fine, good"),
    ],
)
def test_what_is_refused_and_can_be_forced(counts, words):
    labels = labels_of(*counts)
    with pytest.raises(UsageError, match=words) as caught:
        check_rows(labels, NAMES)
    assert "--force" in str(caught.value)
    forced = check_rows(labels, NAMES, force=True)
    assert forced
    assert all(isinstance(reason, str) for reason in forced)


def test_enough_rows_of_every_class_are_taken():
    assert check_rows(labels_of(10, 10, 10), NAMES) == []


def test_sentences_count_and_not_their_words():
    words = labels_of(100, 100, 100)
    with pytest.raises(UsageError, match="12 sentences are too few"):
        check_rows(words, NAMES, rows=12, unit="sentences")
    assert check_rows(words, NAMES, rows=30, unit="sentences") == []


def test_a_wide_interval_is_said_with_the_rows_that_would_halve_it():
    measured = {"rows": 60, "metric": "accuracy", "score_interval": [0.78, 0.95]}
    labels = labels_of(20, 20, 20)
    assert doubts(measured, labels, labels) == [
        "the 95 % interval of the accuracy is 0.17 wide (0.780 to 0.950) with 60 rows; "
        "about 240 would halve it"
    ]
    assert doubts({**measured, "score_interval": [0.9, 0.95]}, labels, labels) == []


def test_a_model_no_better_than_the_commonest_class_is_said():
    measured = {"rows": 100, "metric": "accuracy", "score_interval": [0.6, 0.65]}
    labels = labels_of(60, 30, 10)
    always = np.zeros(100, dtype=np.int64)
    (found,) = doubts(measured, labels, always)
    assert "right in 60.0% of these rows, no more often than" in found
    assert "model's task" in found


def test_a_point_keeps_its_warnings():
    trace = random_trace(rows=40)
    point = calibrate(trace, Target("full"), name="p")
    assert with_warnings(point, []) is point
    warned = with_warnings(point, ["too few"])
    assert OperatingPoint.from_json(warned.to_json()).measured["warnings"] == ["too few"]
    assert warned.policy == point.policy == Policy.parse("full")
