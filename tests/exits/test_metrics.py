"""Metrics against scikit-learn, intervals against scipy and against resampled rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sklearn_metrics

from de3bert.errors import UsageError
from de3bert.exits.metrics import (
    METRICS,
    Counts,
    check_metric,
    interval,
    per_class,
    score,
    score_interval,
)


@st.composite
def answers(draw, classes):
    rows = draw(st.integers(1, 30))
    column = st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)
    return draw(column), draw(column)


def sklearn_score(name, labels, predictions, classes):
    if name == "accuracy":
        return sklearn_metrics.accuracy_score(labels, predictions)
    if name == "f1":
        return sklearn_metrics.f1_score(labels, predictions, zero_division=0)
    if name == "macro_f1":
        return sklearn_metrics.f1_score(
            labels, predictions, average="macro", labels=range(classes), zero_division=0
        )
    return sklearn_metrics.matthews_corrcoef(labels, predictions)


@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.data(), st.integers(2, 4))
def test_scores_match_scikit_learn(data, classes):
    labels, predictions = data.draw(answers(classes))
    for name in METRICS:
        if name == "f1" and classes > 2:
            continue
        expected = sklearn_score(name, labels, predictions, classes)
        assert score(name, labels, predictions, classes) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(answers(3))
def test_per_class_matches_scikit_learn(both):
    labels, predictions = both
    expected = sklearn_metrics.precision_recall_fscore_support(
        labels, predictions, labels=range(3), zero_division=0
    )
    found = per_class(labels, predictions, ("a", "b", "c"))
    assert [row["label"] for row in found] == ["a", "b", "c"]
    for column, key in zip(expected, ("precision", "recall", "f1", "rows"), strict=True):
        np.testing.assert_allclose([row[key] for row in found], column, atol=1e-12)


def test_many_points_at_once():
    rng = np.random.default_rng(0)
    labels, tries = rng.integers(0, 2, 50), rng.integers(0, 2, (7, 50))
    each = [Counts.of(labels, predictions, 2) for predictions in tries]
    together = Counts(
        50, each[0].actual, np.stack([c.predicted for c in each]), np.stack([c.hits for c in each])
    )
    for name in METRICS:
        alone = [score(name, labels, predictions, 2) for predictions in tries]
        np.testing.assert_allclose(METRICS[name](together), alone)


def test_f1_is_for_two_classes():
    with pytest.raises(UsageError, match="Use macro_f1"):
        score("f1", [0, 1, 2], [0, 1, 2], 3)


def test_what_cannot_be_scored():
    with pytest.raises(UsageError, match='Did you mean "accuracy"'):
        score("acuracy", [0], [0], 2)
    with pytest.raises(UsageError, match="Cannot score"):
        score("accuracy", [0, 1], [0], 2)
    with pytest.raises(UsageError, match="Cannot score"):
        score("accuracy", [], [], 2)
    with pytest.raises(UsageError, match="0 to 1"):
        score("accuracy", [0, 2], [0, 1], 2)


@pytest.mark.parametrize(("hits", "rows"), [(0, 10), (10, 10), (7, 10), (812, 872)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_interval_is_exact(hits, rows, level):
    expected = binomtest(hits, rows).proportion_ci(level, method="exact")
    assert interval(hits, rows, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_interval_without_rows():
    with pytest.raises(UsageError, match="No interval"):
        interval(0, 0)


def test_the_interval_of_accuracy_is_the_exact_one():
    labels, predictions = [0, 1, 1, 0, 1], [0, 1, 0, 0, 1]
    assert score_interval("accuracy", labels, predictions, 2) == interval(4, 5)


@pytest.mark.parametrize("name", ["f1", "macro_f1", "matthews"])
def test_the_bootstrap_agrees_with_resampled_rows(name):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 400)
    predictions = np.where(rng.random(400) < 0.8, labels, 1 - labels)
    found = score_interval(name, labels, predictions, 2, resamples=2000)
    assert found == score_interval(name, labels, predictions, 2, resamples=2000)
    drawn = [rng.integers(0, 400, 400) for _ in range(2000)]
    scores = [score(name, labels[rows], predictions[rows], 2) for rows in drawn]
    assert found == pytest.approx(tuple(np.quantile(scores, [0.025, 0.975])), abs=0.012)
    assert found[0] < score(name, labels, predictions, 2) < found[1]


def test_a_metric_that_does_not_fit_is_refused_before_the_work():
    check_metric("f1", 2)
    check_metric("macro_f1", 5)
    with pytest.raises(UsageError, match="f1 is for 2 classes, this data has 5"):
        check_metric("f1", 5)
    with pytest.raises(UsageError, match="Unknown metric"):
        check_metric("best", 2)
