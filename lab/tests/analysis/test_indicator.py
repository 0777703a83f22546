"""Entropy against EDR on the same checkpoint."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lab.tests.analysis.toys import same_rows, subject, toy_trace

from de3bert.errors import UsageError
from de3bert.exits.curve import curve
from de3lab.analysis import ANALYSES, analyse

INDICATOR = ANALYSES["indicator"]
SPEEDS = [1.5, 2.0, 3.0]


def asked(subjects, **settings):
    given = {"speeds": SPEEDS, "resamples": 40, **settings}
    return analyse("indicator", subjects, given, "").numbers


@pytest.fixture
def runs(tmp_path):
    trace = toy_trace(rows=150)
    seeds = [same_rows(trace, seed) for seed in range(3)]
    return [subject(tmp_path, f"s{n}", one, label="de3") for n, one in enumerate(seeds)]


def lines(numbers):
    return {line["label"]: line for line in numbers["lines"]}


def differences(numbers):
    return {(pair["ours"], pair["theirs"]): pair for pair in numbers["differences"]}


def test_scores_are_those_of_the_curves(runs):
    found = lines(asked(runs, lambdas=[2.0], metric="f1"))
    families = {
        "EDR (λ = 2)": "edr(lambda=2.0)",
        "entropy": "entropy",
        "distance ratio": "distance_ratio",
    }
    assert {label: line["family"] for label, line in found.items()} == families
    for label, family in families.items():
        curves = [curve(run.trace, family, "f1") for run in runs]
        for speed, key in zip(SPEEDS, ("1.5", "2", "3"), strict=True):
            seen, values = found[label]["at"][key], [one.at(speed) for one in curves]
            assert seen["values"] == values
            assert (seen["mean"], seen["n"]) == (pytest.approx(np.mean(values)), 3)
            assert seen["sd"] == pytest.approx(np.std(values, ddof=1))
        assert found[label]["full"]["values"] == [one.score[0] for one in curves]
        drawn = found[label]["curve"]
        place = drawn["layer_speedup"].index(2.0)
        assert drawn["score"][place] == pytest.approx(found[label]["at"]["2"]["mean"], abs=1e-6)
        assert drawn["sd"][place] == pytest.approx(found[label]["at"]["2"]["sd"], abs=1e-6)


def test_differences_are_run_by_run(runs):
    numbers = asked(runs)
    found, pairs = lines(numbers), differences(numbers)
    assert list(pairs) == [("EDR (λ = 1)", "entropy"), ("distance ratio", "entropy")]
    pair = pairs["EDR (λ = 1)", "entropy"]
    for key in ("1.5", "2", "3"):
        both = found["EDR (λ = 1)"]["at"][key]["values"], found["entropy"]["at"][key]["values"]
        assert pair["at"][key]["values"] == np.subtract(*both).tolist()
    growth = np.subtract(pair["at"]["3"]["values"], pair["at"]["1.5"]["values"])
    assert pair["growth"]["values"] == pytest.approx(growth.tolist())
    assert (pair["growth"]["from"], pair["growth"]["to"]) == (1.5, 3.0)


def test_lambda_zero_is_entropy(runs):
    (pair, _) = asked(runs, lambdas=[0.0])["differences"]
    for seen in pair["at"].values():
        assert seen["values"] == [0.0] * 3
        assert (seen["over_rows"], seen["beyond_noise"]) == ([0.0, 0.0], False)
        assert seen["p"] is None


def test_a_ratio_that_knows_better_is_beyond_noise(tmp_path):
    """Distances that tell right from wrong where the logits do not."""
    trace = toy_trace(rows=200)
    right = trace.correct[:, :-1]
    near = np.where(trace.predictions[:, :-1, None] == np.arange(2), 0.1, 1.0)
    far = np.where(trace.predictions[:, :-1, None] == np.arange(2), 1.0, 0.1)
    knowing = replace(trace, distances=np.where(right[:, :, None], near, far))
    pair = asked([subject(tmp_path, "t", knowing)])["differences"][0]
    assert pair["at"]["3"]["over_rows"][0] > 0
    assert pair["at"]["3"]["beyond_noise"]
    assert pair["at"]["3"]["over_seeds"] is None
    useless = replace(trace, distances=np.full_like(trace.distances, 0.5))
    same = asked([subject(tmp_path, "u", useless)])["differences"][0]
    assert not any(seen["beyond_noise"] for seen in same["at"].values())


def test_lambda_of_the_model_and_several(tmp_path):
    own = subject(tmp_path, "own", toy_trace(), method_options={"lambda": 0.667})
    assert asked([own])["lambdas"] == [0.667]
    several = asked([own], lambdas=[3.0, 1.0, 3.0])
    assert several["lambdas"] == [1.0, 3.0]
    assert list(lines(several))[:2] == ["EDR (λ = 1)", "EDR (λ = 3)"]
    assert len(several["differences"]) == 3


def test_the_seed_draws_the_rows(runs):
    first, again, other = (asked(runs[:1], seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first["differences"][0]["at"] != other["differences"][0]["at"]


def test_tables_and_figure_from_stored_numbers(runs, tmp_path):
    numbers = json.loads(json.dumps(asked(runs, speeds=None), allow_nan=False))
    assert numbers["speeds"] == [1.5, 2.0, 2.5, 3.0, 4.0]
    scores, gains = INDICATOR.tables(numbers)
    assert scores.columns == ("indicator", "runs", "full depth", "1.5x", "2x", "2.5x", "3x", "4x")
    assert [row[1] for row in scores.rows] == [3, 3, 3]
    assert "±" in scores.rows[0][3]
    assert "n = 150 rows" in scores.note
    assert len(gains.rows) == 10
    assert gains.rows[0][:3] == ("EDR (λ = 1) - entropy", "1.5x", 3)
    assert "From 1.5x to 4x the gain of EDR (λ = 1) changes by" in gains.note
    INDICATOR.draw(tmp_path / "f.svg", numbers)
    drawn = (tmp_path / "f.svg").read_text(encoding="utf-8")
    for words in ("EDR (λ = 1)", "to entropy, 95 % over seeds", "n = 150, 3 runs (mean ± sd)"):
        assert f"<!-- {words} -->" in drawn


def test_with_one_speed_and_one_run(runs, tmp_path):
    numbers = asked(runs[:1], speeds=[2.0])
    assert all(pair["growth"] is None for pair in numbers["differences"])
    INDICATOR.draw(tmp_path / "f.svg", numbers)
    assert "95 % over rows" in (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert "±" not in INDICATOR.tables(numbers)[0].rows[0][3]


def test_bad_input(tmp_path, runs):
    plain = subject(tmp_path, "plain", replace(toy_trace(), distances=None), method="pabee")
    with pytest.raises(UsageError, match="has no distances to prototypes"):
        asked([plain])
    with pytest.raises(UsageError, match=r"A layer speed-up of 9 is out of reach.*1 to 6"):
        asked(runs, speeds=[9.0])
    with pytest.raises(UsageError, match="lambda of edr must be finite and >= 0"):
        asked(runs, lambdas=[-1.0])
    with pytest.raises(UsageError, match='Unknown metric "acc"'):
        asked(runs, metric="acc")
    few = subject(tmp_path, "few", toy_trace(rows=9))
    with pytest.raises(UsageError, match=r"`indicator` needs at least 10 rows, .* has 9"):
        asked([few])
    fewer = subject(tmp_path, "fewer", toy_trace(rows=150, exits=4), label="de3")
    with pytest.raises(UsageError, match="runs with the same exits"):
        asked([*runs, fewer])
