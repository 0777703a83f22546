"""Means, averages, ranks and tests, from records made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from lab.tests.documents.made import run_record
from scipy import stats

from de3lab.documents import RunRecord
from de3lab.study.aggregate import aggregate
from de3lab.study.results import Results
from de3lab.study.spec import StudySpec

METHODS = ["full", "joint-entropy", "de3", "oracle"]


def spec(tasks: dict[str, list[int]]) -> StudySpec:
    files = {"train": "t.csv", "test": {"dev": "d.csv"}, "calibration_rows": 10}
    return StudySpec.model_validate(
        {
            "backbone": "b",
            "methods": METHODS,
            "speeds": [2.0],
            "task": [{"name": name, "seeds": seeds, **files} for name, seeds in tasks.items()],
        }
    )


def record(task: str, method: str, seed: int, score: float | None, **more: Any) -> RunRecord:
    at = None if score is None else {"score": score, "each": {"accuracy": score}, "family": "f"}
    scored = {
        "rows": 20,
        "at": {"2": at},
        "area": None,
        "point": None,
        "curve": {"layer_speedup": [1.0, 2.0], "score": [0.9, score or 0.5]},
        "calibrated": {"2": None},
        "exit_scores": {"1": 0.5, "2": score or 0.6},
        "exit_accuracy": {},
        **more,
    }
    methods = {method: {"method": method, "choices": {}, "tests": {"dev": scored}}}
    return run_record(task=task, training=method, seed=seed, base_depth=12, methods=methods)


def calibrated(score: float, speed: float) -> dict[str, Any]:
    found = {"policy": "full", "score": score, "score_interval": None, "layer_speedup": speed}
    return {**found, "layers_mean": 6.0, "each": {}, "interval_of": "accuracy"}


def of(tasks, *records) -> dict[str, Any]:
    return aggregate(Results(spec(tasks), records))


def runs(task, scores: dict[str, list[float | None]]):
    return [
        record(task, method, seed, score)
        for method, values in scores.items()
        for seed, score in enumerate(values, start=1)
    ]


def test_means_over_seeds():
    found = of({"a": [1, 2, 3]}, *runs("a", {"de3": [0.8, 0.9, 1.0], "full": [None] * 3}))
    score = found["scores"]["2"]["a"]["de3"]
    assert score["mean"] == pytest.approx(0.9)
    assert score["sd"] == pytest.approx(0.1)
    assert (score["n"], score["values"]) == (3, {"1": 0.8, "2": 0.9, "3": 1.0})
    assert "full" not in found["scores"]["2"]["a"]  # out of reach
    assert found["curves"]["a"]["de3"] == {
        "layer_speedup": [1.0, 2.0], "score": [0.9, 0.9], "n": 3, "sd": [0.0, 0.1],
    }  # fmt: skip
    assert found["exit_sd"]["a"]["de3"]["2"] == pytest.approx(0.1)
    assert found["exits"]["a"]["de3"]["2"] == pytest.approx(0.9)


THREE = {"a": [1], "b": [1], "c": [1]}
ALL = {"full": [None], "joint-entropy": [0.7], "de3": [0.8]}


def test_the_average_is_over_tasks_that_all_have_finished():
    """The oracle is not waited for; a method that is out of reach has no average."""
    rest = runs("b", {**ALL, "de3": [0.6]}) + runs("c", {"joint-entropy": [0.1], "full": [None]})
    found = of(THREE, *runs("a", ALL), *rest)
    assert found["complete_tasks"] == ["a", "b"]
    assert found["averages"]["2"] == {
        "tasks": ["a", "b"],
        "methods": {"joint-entropy": pytest.approx(0.7), "de3": pytest.approx(0.7)},
    }


def test_an_average_is_over_the_seeds_that_all_share():
    """Three seeds of one method beside one of another: only the common one counts."""
    scores = {"full": [0.5], "joint-entropy": [0.7, 0.1, 0.1], "de3": [0.8, 0.9, 1.0]}
    found = of({"a": [1, 2, 3]}, *runs("a", scores))
    assert found["averages"]["2"]["methods"] == {"full": 0.5, "joint-entropy": 0.7, "de3": 0.8}


def test_the_average_of_the_paper():
    """DE3 at 2x: MRPC and QQP count by the mean of F1 and accuracy, and AVG is 82.6."""
    scores = {"mnli": 83.2, "mrpc": (86.6 + 81.5) / 2, "qnli": 90.0, "qqp": (71.2 + 89.4) / 2,
              "rte": 65.7, "sst2": 92.5}  # fmt: skip
    every = [
        record(task, method, 1, score / 100) for task, score in scores.items() for method in ALL
    ]
    found = of({task: [1] for task in scores}, *every)
    assert round(100 * found["averages"]["2"]["methods"]["de3"], 1) == 82.6


def test_ranks_are_within_task_and_seed_then_means():
    tasks = {"a": [1, 2], "b": [1]}
    found = of(
        tasks,
        *runs("a", {"full": [0.9, 0.7], "joint-entropy": [0.7, 0.8], "de3": [0.8, 0.9]}),
        *runs("b", {"full": [0.5], "joint-entropy": [0.5], "de3": [0.4]}),
        record("a", "oracle", 1, 1.0),
    )
    # a: full 1 and 3, entropy 3 and 2, de3 2 and 1; b: full and entropy share 1.5, de3 3
    assert found["ranks"]["2"]["methods"] == {
        "full": (2.0 + 1.5) / 2, "joint-entropy": (2.5 + 1.5) / 2, "de3": (1.5 + 3.0) / 2,
    }  # fmt: skip


def test_who_does_not_reach_a_speed_is_not_ranked_there():
    scores = {"full": [0.9, None], "joint-entropy": [0.7, 0.7], "de3": [0.8, 0.6]}
    found = of({"a": [1, 2]}, *runs("a", scores))
    assert found["ranks"]["2"]["methods"] == {"joint-entropy": 1.5, "de3": 1.5}


def test_only_seeds_that_all_have_are_ranked():
    scores = {"full": [0.9], "joint-entropy": [0.7, 0.99], "de3": [0.8, 0.6]}
    found = of({"a": [1, 2]}, *runs("a", scores))
    assert found["ranks"]["2"]["methods"] == {"full": 1.0, "joint-entropy": 3.0, "de3": 2.0}


def test_tests_against_the_chosen_method():
    ours, theirs = [0.8, 0.9, 0.85], [0.7, 0.75, 0.8]
    tasks = {"a": [1, 2, 3], "b": [1, 2, 3], "c": [1]}
    other = {"de3": [0.5, 0.6, 0.6], "joint-entropy": [0.5, 0.58, 0.55]}
    found = of(
        tasks,
        *runs("a", {"de3": ours, "joint-entropy": theirs}),
        *runs("b", other),
        *runs("c", {"de3": [0.9], "joint-entropy": [0.8]}),
    )["tests"]["2"]
    assert list(found) == ["joint-entropy"]  # `full` is not finished, the oracle is never tested
    by_task = found["joint-entropy"]["tasks"]
    first = stats.ttest_rel(ours, theirs).pvalue  # two-tailed
    second = stats.ttest_rel(*other.values()).pvalue
    assert by_task["a"]["p"] == pytest.approx(first)
    assert (by_task["c"]["p"], by_task["c"]["p_holm"]) == (None, None)
    assert by_task["a"]["p_holm"] == pytest.approx(min(first, second) * 2)
    over = found["joint-entropy"]["over_tasks"]
    means = ([0.85, 1.7 / 3, 0.9], [0.75, 1.63 / 3, 0.8])
    assert over["p"] == over["p_holm"] == pytest.approx(stats.ttest_rel(*means).pvalue)


def test_holm_goes_over_all_methods_and_tasks_of_a_speed():
    noise = {"full": [0.80, 0.82, 0.79], "joint-entropy": [0.70, 0.71, 0.73]}
    ours = {"de3": [0.81, 0.80, 0.82]}
    found = of({"a": [1, 2, 3], "b": [1, 2, 3]}, *runs("a", noise | ours), *runs("b", ours | noise))
    tests = found["tests"]["2"]
    plain = {(m, t): tests[m]["tasks"][t]["p"] for m in noise for t in ("a", "b")}
    assert len(plain) == 4
    for (method, task), p in plain.items():
        rank = sorted(plain.values()).index(p)  # both tasks have the same scores
        seen = tests[method]["tasks"][task]["p_holm"]
        assert seen == pytest.approx(min(1.0, p * (4 - rank))) or seen > p * (4 - rank)
    low = min(plain.values())
    assert tests["joint-entropy"]["tasks"]["a"]["p_holm"] == pytest.approx(4 * low)


def test_being_below_is_tested_too():
    scores = {"full": [0.9, 0.91, 0.905], "de3": [0.8, 0.8, 0.8], "joint-entropy": [0.8] * 3}
    test = of({"a": [1, 2, 3]}, *runs("a", scores))["tests"]["2"]["full"]["tasks"]["a"]
    assert test["difference"] < 0
    assert test["p_holm"] < 0.05


def test_pairs_are_of_the_same_seed():
    """The seed that only one of them has finished is left out."""
    found = of({"a": [1, 2, 3]}, *runs("a", {"de3": [0.8, 0.9, 0.1], "joint-entropy": [0.7, 0.7]}))
    assert found["tests"]["2"]["joint-entropy"]["tasks"]["a"]["n"] == 2
    assert found["tests"]["2"]["joint-entropy"]["tasks"]["a"]["difference"] == pytest.approx(0.15)


def test_two_tasks_are_too_few_for_a_test_over_tasks():
    found = of({"a": [1], "b": [1]}, *runs("a", ALL), *runs("b", {**ALL, "de3": [0.9]}))
    over = found["tests"]["2"]["joint-entropy"]["over_tasks"]
    assert over["p"] is None
    assert "needs at least 3, there are 2" in over["reason"]


def test_calibrated_points_and_areas():
    more = {
        "calibrated": {"2": calibrated(0.8, 2.1)},
        "area": {"score": 0.7, "low": 1.5, "high": 4.0, "whole": True, "family": "f"},
    }
    other = {
        "calibrated": {"2": calibrated(0.6, 1.9)},
        "area": {"score": 0.9, "low": 1.5, "high": 3.0, "whole": False, "family": "f"},
    }
    found = of(
        {"a": [1, 2]}, record("a", "de3", 1, 0.8, **more), record("a", "de3", 2, 0.8, **other)
    )
    point = found["calibrated"]["2"]["a"]["de3"]
    assert (point["mean"], point["layer_speedup"]) == (pytest.approx(0.7), pytest.approx(2.0))
    reach = stats.t.ppf(0.975, 1) * stats.tstd([2.1, 1.9]) / 2**0.5
    assert (point["low"], point["high"]) == pytest.approx((2.0 - reach, 2.0 + reach))
    assert (point["over"], point["off"]) == ("seeds", False)
    area = found["areas"]["a"]["de3"]
    assert (area["mean"], area["high"], area["whole"]) == (pytest.approx(0.8), 3.0, False)


def test_a_speed_that_is_missed_is_said():
    missed = [record("a", "de3", k, 0.8, calibrated={"2": calibrated(0.8, s)})
              for k, s in enumerate((1.80, 1.82, 1.84), start=1)]  # fmt: skip
    seen = of({"a": [1, 2, 3]}, *missed)["calibrated"]["2"]["a"]["de3"]
    assert seen["off"]
    assert seen["high"] < 2.0
    one = {**calibrated(0.8, 1.8), "layer_speedup_interval": [1.7, 1.9]}
    alone = of({"a": [1]}, record("a", "de3", 1, 0.8, calibrated={"2": one}))
    seen = alone["calibrated"]["2"]["a"]["de3"]
    assert (seen["low"], seen["high"], seen["over"], seen["off"]) == (1.7, 1.9, "rows", True)
    old = of({"a": [1]}, record("a", "de3", 1, 0.8, calibrated={"2": calibrated(0.8, 1.8)}))
    assert "low" not in old["calibrated"]["2"]["a"]["de3"]  # nothing to go by, nothing claimed
    assert not old["calibrated"]["2"]["a"]["de3"]["off"]


def test_steps_are_counted_with_those_of_the_model_that_exits_were_fitted_to(monkeypatch):
    def trained(training, steps, teacher=None, **phases):
        told = [{"name": name, "steps": count} for name, count in phases.items()]
        made = record("a", training, 1, 0.8).model_dump()
        return RunRecord.model_validate(
            {**made, "teacher": teacher, "training_record": {"steps": steps, "phases": told}}
        )

    methods = ["full", "deebert", "full+fitted", "pkd"]
    study = spec({"a": [1]}).model_copy(update={"methods": methods, "chosen": "full"})
    every = [
        trained("full", 500, train=500),
        trained("deebert", 1000, **{"fine-tune": 500, "exits": 500}),
        trained("full+fitted", 0, "full", fit=0),
        trained("pkd", 400, "full", train=400),
    ]
    found = aggregate(Results(study, every))["steps"]["a"]
    assert found["full"] == {"steps": 500, "phases": {"train": 500}}
    assert found["deebert"] == {"steps": 1000, "phases": {"fine-tune": 500, "exits": 500}}
    assert found["full+fitted"] == {"steps": 500, "phases": {"full": 500}}
    assert found["pkd"] == {"steps": 400, "phases": {"train": 400}, "teacher": 500}


def test_points_of_models_with_one_speed():
    point = {"point": {"score": 0.9, "each": {"f1": 0.8}, "layer_speedup": 1.0}, "curve": None}
    found = of({"a": [1]}, record("a", "full", 1, None, **point))
    assert found["points"]["a"]["full"]["mean"] == 0.9
    assert found["points"]["a"]["full"]["each"] == {"f1": 0.8}
    assert found["curves"]["a"] == {}
    assert found["points"]["a"]["full"]["layer_speedup"] == 1.0
