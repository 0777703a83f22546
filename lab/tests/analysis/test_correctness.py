"""Judging early answers: the paper's accuracy, ROC-AUC with ties, paired intervals, mistakes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.tests.analysis.saved import saved
from sklearn.metrics import roc_auc_score
from tests.exits.slow import signal_rows
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import UsageError
from de3bert.exits import Signal, Trace
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.auc import Ordered
from de3lab.analysis.correctness import estimates_right, measure_correctness
from de3lab.statistics import resampling, row_counts

ANALYSIS = ANALYSES["correctness"]
SETTINGS = {**ANALYSIS.settings, "lambdas": [1.0]}


def measured(folder, *traces: Trace, **changes):
    return measure_correctness([saved(folder, trace) for trace in traces], {**SETTINGS, **changes})


def test_the_golden_number():
    values, right = np.array([0.1, 0.3, 0.15, 0.6]), np.array([True, True, False, False])
    assert estimates_right(values, right, 0.2).mean() == 0.5


def test_the_threshold_is_strict():
    values, right = np.array([0.2, 0.2]), np.array([True, False])
    assert estimates_right(values, right, 0.2).mean() == 0.5  # both count as wrong answers
    assert estimates_right(values, np.array([False, False]), 0.2).mean() == 1.0


def all_pairs_auc(values, right) -> float:
    """How often the right one of a right and a wrong answer has the lower signal."""
    good, bad = values[right][:, None], values[~right][None]
    return float(np.mean((good < bad) + 0.5 * (good == bad)))


ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.booleans(), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=200)
@given(ROWS)
def test_auc_with_ties_and_weights_is_that_of_all_pairs(rows):
    values, right, times = (np.array(column) for column in zip(*rows, strict=True))
    found = float(Ordered.of(values, right).auc(times[None])[0])
    drawn, truth = np.repeat(values, times), np.repeat(right, times)
    if truth.all() or not truth.any():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(all_pairs_auc(drawn, truth))
        assert found == pytest.approx(roc_auc_score(truth, -drawn))


def test_auc_of_a_perfect_and_of_a_reversed_signal():
    right = np.array([True, True, False])
    assert Ordered.of(np.array([0.1, 0.2, 0.3]), right).plain == 1.0
    assert Ordered.of(np.array([0.3, 0.2, 0.1]), right).plain == 0.0
    assert Ordered.of(np.array([0.2, 0.2, 0.2]), right).plain == 0.5


def test_draws_are_samples_with_replacement_whatever_the_chunk(monkeypatch):
    whole = np.concatenate(list(row_counts(50, 40, seed=1)))
    monkeypatch.setattr(resampling, "CHUNK", 150)  # 3 draws at a time
    parts = list(row_counts(50, 40, seed=1))
    assert len(parts) == 14
    assert (np.concatenate(parts) == whole).all()
    assert whole.shape == (40, 50)
    assert (whole.sum(axis=1) == 50).all()
    assert (np.concatenate(list(row_counts(50, 40, seed=2))) != whole).any()
    assert whole.mean() == 1.0
    assert (whole == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.03)


def test_accuracy_and_auc_are_those_of_the_slow_way(tmp_path):
    trace = random_trace(rows=80)
    numbers = measured(tmp_path, trace, tau=[0.3, 0.6], layers=[1, 4], lambdas=[2.0])
    slow = {
        "entropy": np.array(signal_rows(trace, Signal("entropy"))),
        "edr": np.array(signal_rows(trace, Signal.parse("edr(lambda=2.0)"))),
    }
    right = np.argmax(trace.logits, axis=-1) == trace.labels[:, None]
    assert [(e["layer"], e["tau"]) for e in numbers["estimation"]] == [
        (1, 0.3), (1, 0.6), (4, 0.3), (4, 0.6)
    ]  # fmt: skip
    for each in numbers["estimation"]:
        column = each["layer"] - 1
        assert each["right"]["mean"] == pytest.approx(right[:, column].mean())
        for name, values in slow.items():
            pairs = zip(values[:, column], right[:, column], strict=True)
            hits = [(value < each["tau"]) == truth for value, truth in pairs]
            assert each[name]["mean"] == pytest.approx(np.mean(hits))
            assert each["below"][name] == pytest.approx((values[:, column] < each["tau"]).mean())
        gain = each["edr"]["mean"] - each["entropy"]["mean"]
        assert each["difference"]["mean"] == pytest.approx(gain)
    assert [each["layer"] for each in numbers["auc"]] == [1, 2, 3, 4, 5]
    for column, each in enumerate(numbers["auc"]):
        for name, values in slow.items():
            expected = roc_auc_score(right[:, column], -values[:, column])
            assert each[name]["mean"] == pytest.approx(expected, abs=1e-12)


def test_intervals_are_paired_over_rows_and_runs(tmp_path):
    traces = [random_trace(rows=60, seed=seed) for seed in (1, 2)]
    traces[1] = replace(traces[1], labels=traces[0].labels)
    numbers = measured(tmp_path, *traces, tau=[0.5], layers=[2], seed=5)
    runs = [
        {
            "entropy": np.array(signal_rows(trace, Signal("entropy")))[:, 1],
            "edr": np.array(signal_rows(trace, Signal.parse("edr(lambda=1.0)")))[:, 1],
            "right": trace.correct[:, 1],
        }
        for trace in traces
    ]
    ranked, judged = [], []
    for counts in np.concatenate(list(row_counts(60, 1000, seed=5))):
        picked = np.repeat(np.arange(60), counts)
        gains = [
            all_pairs_auc(run["edr"][picked], run["right"][picked])
            - all_pairs_auc(run["entropy"][picked], run["right"][picked])
            for run in runs
        ]
        ranked.append(np.mean(gains))
        judged.append(
            np.mean([
                estimates_right(run["edr"][picked], run["right"][picked], 0.5).mean()
                - estimates_right(run["entropy"][picked], run["right"][picked], 0.5).mean()
                for run in runs
            ])
        )  # fmt: skip
    found = numbers["auc"][1]["difference"]
    assert (found["low"], found["high"]) == pytest.approx(np.quantile(ranked, [0.025, 0.975]))
    assert found["low"] < found["mean"] < found["high"]
    assert found["mean"] == pytest.approx(np.mean(found["values"]))
    found = numbers["estimation"][0]["difference"]
    assert (found["low"], found["high"]) == pytest.approx(np.quantile(judged, [0.025, 0.975]))


def test_the_same_seed_gives_the_same_numbers_and_another_does_not(tmp_path):
    trace = random_trace()
    first, again = measured(tmp_path, trace, seed=3), measured(tmp_path, trace, seed=3)
    assert first == again
    other = measured(tmp_path, trace, seed=4)
    assert first["auc"][0]["difference"]["low"] != other["auc"][0]["difference"]["low"]
    assert first["auc"][0]["edr"] == other["auc"][0]["edr"]


def test_lambda_0_gains_nothing(tmp_path):
    numbers = measured(tmp_path, random_trace(), lambdas=[0.0])
    for each in (*numbers["auc"], *numbers["estimation"]):
        assert each["entropy"] == each["edr"]
        seen = each["difference"]
        assert (seen["mean"], seen["low"], seen["high"]) == (0, 0, 0)


def judge_trace(right: list[list[bool]], seed: int = 0) -> Trace:
    """Two classes; row r is right at exit e where `right[e][r]` says so; the final one is right."""
    chance = np.random.default_rng(seed)
    truth = np.array([*right, [True] * len(right[0])]).T
    labels = np.arange(len(truth)) % 2
    predicted = np.where(truth, labels[:, None], 1 - labels[:, None])
    sure = 1 + chance.random(truth.shape)
    logits = np.eye(2)[predicted] * sure[..., None]
    distances = 0.1 + chance.random((len(truth), len(right), 2))
    return make_trace(logits, labels, distances)


def test_no_wrong_answers_no_auc(tmp_path):
    all_right, few_wrong, mixed = [True] * 20, [True] * 18 + [False] * 2, [True, False] * 10
    trace = judge_trace([all_right, [False] * 20, few_wrong, mixed])
    numbers = measured(tmp_path, trace, layers=[1, 4])
    ranked = numbers["auc"]
    assert ranked[0]["entropy"] is ranked[0]["edr"] is ranked[0]["difference"] is None
    assert ranked[0]["reason"] == "all 20 answers are right: no AUC"
    assert ranked[1]["reason"] == "all 20 answers are wrong: no AUC"
    assert ranked[2]["edr"]["mean"] is not None
    assert (ranked[2]["difference"]["low"], ranked[2]["difference"]["high"]) == (None, None)
    assert ranked[2]["reason"] == "no interval: only 2 answers are wrong, 5 are needed"
    assert ranked[3]["reason"] is None
    assert numbers["trend"]["reason"] == "a trend needs at least 3 points, there are 2"
    table = ANALYSIS.tables(numbers)[1]
    assert "Layer 1: all 20 answers are right: no AUC." in table.note
    assert table.cells()[0][2:] == ["-", "-", "-"]
    ANALYSIS.draw(tmp_path / "figure.svg", numbers)
    assert (tmp_path / "figure.svg").exists()


def test_a_run_without_wrong_answers_takes_the_auc_of_all(tmp_path):
    good, mixed = judge_trace([[True] * 20]), judge_trace([[True, False] * 10])
    numbers = measured(tmp_path, mixed, good, layers=[1])
    assert numbers["auc"][0]["reason"] == "all 20 answers are right: no AUC"
    assert numbers["auc"][0]["right"]["values"] == [0.5, 1.0]
    assert numbers["estimation"][0]["edr"]["n"] == 2


def test_gains_that_fall_with_depth_are_a_trend(tmp_path):
    """The distances know the label at every layer, the logits only deeper ones do."""
    numbers = measured(tmp_path, random_trace(rows=400, exits=11, noise=1.0))
    gains = [each["difference"]["mean"] for each in numbers["auc"]]
    assert gains[0] > 0.05
    assert numbers["trend"]["n"] == 10
    assert numbers["trend"]["rho"] < -0.5
    assert numbers["trend"]["p"] < 0.05


@pytest.mark.parametrize(("exits", "layers"), [(12, [2, 5, 10]), (6, [2, 5]), (5, [2]), (3, [2])])
def test_the_usual_layers_are_cut_to_those_that_exist(tmp_path, exits, layers):
    assert measured(tmp_path, random_trace(exits=exits))["layers"] == layers


def test_exits_are_asked_for_by_their_layer(tmp_path):
    trace = replace(random_trace(exits=4), exit_layers=(3, 5, 10, 12))
    numbers = measured(tmp_path, trace)
    assert numbers["layers"] == [5, 10]
    assert [each["layer"] for each in numbers["auc"]] == [3, 5, 10]
    assert numbers["estimation"][0]["right"]["mean"] == pytest.approx(trace.correct[:, 1].mean())


def test_lambda_is_the_models_own_unless_it_is_given(tmp_path):
    subject = saved(tmp_path, random_trace(), method_options={"lambda": 3.0})
    assert measure_correctness([subject], {**SETTINGS, "lambdas": None})["lambda"] == 3.0
    assert measure_correctness([subject], SETTINGS)["lambda"] == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"layers": [2, 7]},
            r"no exit before the last one at layer 7\. There are: 1, 2, 3, 4, 5\.",
        ),
        ({"layers": [6]}, "no exit before the last one at layer 6"),  # the final one
        ({"tau": [1.5]}, r"lies in 0 to 1, got 1\.5"),
        ({"tau": [float("nan")]}, "lies in 0 to 1, got nan"),
        ({"lambdas": [1.0, 2.0]}, "takes one --lambda, got 2"),
    ],
)
def test_settings_that_make_no_sense(tmp_path, changes, words):
    with pytest.raises(UsageError, match=words):
        measured(tmp_path, random_trace(), **changes)


def test_traces_that_cannot_be_judged(tmp_path):
    trace = random_trace()
    cases = [
        (replace(trace, distances=None), "no distances to prototypes"),
        (replace(trace, labels=None), "labels"),
        (replace(trace, labels=np.zeros(200, dtype=np.int64)), "one class"),
        (random_trace(rows=9), "needs at least 10 rows, .* has 9"),
        (random_trace(exits=2), r"at the usual layers \(2, 5, 10\)\. Choose others .*: 1\."),
    ]
    for bad, words in cases:
        with pytest.raises(UsageError, match=words):
            measured(tmp_path, bad)


def test_the_numbers_alone_make_tables_and_figures(tmp_path):
    subject = saved(tmp_path, random_trace())
    document = analyse("correctness", [subject], {"tau": [0.2, 0.5]}, "de3 analyze correctness")
    assert document.seed == 0
    numbers = json.loads(json.dumps(document.numbers, allow_nan=False))
    assert numbers == document.numbers
    judged, ranked = ANALYSIS.tables(numbers)
    places = [("2", "0.2"), ("2", "0.5"), ("5", "0.2"), ("5", "0.5")]
    assert [row[:2] for row in judged.rows] == places
    assert len(ranked.rows) == 5
    assert ranked.rows[0][-1].startswith("+")
    assert "n = 200 rows" in judged.note
    for kind in (".png", ".svg"):
        ANALYSIS.draw(tmp_path / f"figure{kind}", numbers)
        assert (tmp_path / f"figure{kind}").stat().st_size > 5000
