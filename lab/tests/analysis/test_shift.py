"""Rules on shifted data: which rule a label stands for, equal speeds, and the paper's table."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest
from lab.tests.analysis.toys import same_rows, subject, toy_trace
from scipy.stats import ttest_rel
from tests.exits import slow
from tests.exits.traces import make_trace

from de3bert.errors import UsageError
from de3bert.exits import Policy, Signal, Trace, replay
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.shift_rules import MUS, rule_of

SHIFT = ANALYSES["shift"]
BASE = toy_trace(rows=150, exits=6, classes=3, seed=1)
DE3, ADAPTED = same_rows(BASE, seed=5), same_rows(BASE, seed=6)


def numbers_of(subjects, **settings):
    """The numbers, as a stored result has them."""
    return json.loads(json.dumps(analyse("shift", subjects, settings, "de3 analyze").numbers))


@pytest.fixture
def four(tmp_path):
    """The paper's four rows: one joint model read in two ways, DE3 before and after."""
    return [
        subject(tmp_path, "a", BASE, label="ceebert", method="joint-entropy"),
        subject(tmp_path, "b", BASE, label="joint-entropy", method="joint-entropy"),
        subject(tmp_path, "c", DE3, label="de3", method_options={"lambda": 2.0}),
        subject(tmp_path, "d", ADAPTED, label="de3 adapted", method_options={"lambda": 2.0}),
    ]


def slow_score(trace: Trace, signal: str, speed: float) -> float:
    """The score at a layer speed-up, on the line between the two nearest outcomes in layers."""
    wanted = trace.rows * trace.depth / speed
    points = slow.threshold_outcomes(trace, Signal.parse(signal), 1)
    (left, low), (right, high) = next(
        pair for pair in itertools.pairwise(points) if pair[0][0] >= wanted >= pair[1][0]
    )
    share = (wanted - left) / (right - left) if right != left else 0.0
    return (low + share * (high - low)) / trace.rows


def slow_bandits(trace: Trace) -> list[tuple[float, float]]:
    """Layer speed-up and score for every mu."""
    found = []
    for mu in MUS:
        answer = replay(trace, Policy.parse(f"bandit(mu={mu})"))
        speed = trace.depth / mean(answer.exit_layers.tolist())
        found.append((speed, mean((answer.labels == trace.labels).tolist())))
    return found


def test_a_label_that_is_a_method_names_the_rule(tmp_path):
    def rule(label, method="joint-entropy", **info):
        return str(rule_of(subject(tmp_path, "x", BASE, label=label, method=method, **info)))

    assert rule("ceebert") == "bandit(arms=0.5:1.0:0.1, c=2.0)"
    assert rule("joint-entropy") == rule("entropy") == rule("deebert") == "entropy"
    assert rule("pabee") == "patience"
    assert rule("pcee") == "entropy x 2"  # the first of those it declares
    assert rule("de3", "de3") == rule("seed 42", "de3") == "edr(lambda=1.0)"
    assert rule("mine", "de3", method_options={"lambda": 0.667}) == "edr(lambda=0.667)"
    assert rule("mine", "de-cosee") == "edr(lambda=1.0)"
    given = subject(tmp_path, "x", BASE, method_options={"lambda": 2.0})
    assert str(rule_of(given, [3.0])) == "edr(lambda=3.0)"


def test_rules_that_cannot_be_known_or_read(tmp_path):
    def refused(words, label, method, lambdas=None):
        one = subject(tmp_path, "x", BASE, label=label, method=method)
        with pytest.raises(UsageError, match=words):
            rule_of(one, lambdas)

    refused("does not say how it was trained.*de3=PATH", "mine", "unknown")
    refused("needs temperatures fitted on calibration rows", "joint-entropy-calibrated", "de3")
    refused("one --lambda for all, got 2", "de3", "de3", [1.0, 2.0])
    fitted = subject(tmp_path, "x", BASE, label="other", method="joint-entropy-calibrated")
    assert str(rule_of(fitted)) == "entropy"  # its own logits are tempered already
    plain = replace(BASE, distances=None)
    both = [subject(tmp_path, name, plain, label=name) for name in ("de3", "ceebert")]
    with pytest.raises(UsageError, match="no distances to prototypes"):
        numbers_of(both)


@pytest.mark.parametrize("asked", [1.5, 2.0, 3.0])
def test_scores_at_the_speed_of_the_bandit(four, asked):
    found = numbers_of(four, speeds=[asked])
    bandits = slow_bandits(BASE)
    place = min(range(len(MUS)), key=lambda i: abs(np.log(bandits[i][0] / asked)))
    speed, score = bandits[place]
    seen = found["at"][f"{asked:g}"]
    assert seen["ceebert"]["layer_speedup"]["mean"] == pytest.approx(speed)
    assert seen["ceebert"]["score"]["mean"] == pytest.approx(score)
    assert seen["ceebert"]["policy"] == str(Policy.parse(f"bandit(mu={MUS[place]})"))
    expected = {
        "joint-entropy": slow_score(BASE, "entropy", speed),
        "de3": slow_score(DE3, "edr(lambda=2.0)", speed),
        "de3 adapted": slow_score(ADAPTED, "edr(lambda=2.0)", speed),
    }
    for label, value in expected.items():
        assert seen[label]["score"]["mean"] == pytest.approx(value)
        assert seen[label]["layer_speedup"]["mean"] == pytest.approx(speed)
        assert seen[label]["difference"]["mean"] == pytest.approx(value - score)
        assert seen[label]["test"]["p"] is None
        assert "at least 2 seeds" in seen[label]["test"]["reason"]
    assert (found["reference"], found["rows"], found["runs"]) == ("ceebert", 150, 1)
    assert found["rules"]["ceebert"]["methods"] == ["joint-entropy"]
    assert found["rules"]["de3"]["full"]["mean"] == pytest.approx(DE3.correct[:, -1].mean())


def test_a_rule_with_a_threshold_as_reference_has_just_the_speeds_asked_for(four):
    found = numbers_of(four, reference="de3", speeds=[2.0])
    seen = found["at"]["2"]
    assert seen["de3"]["layer_speedup"]["mean"] == 2.0
    assert seen["de3"]["score"]["mean"] == pytest.approx(slow_score(DE3, "edr(lambda=2.0)", 2.0))
    assert "difference" not in seen["de3"]
    # The bandit still has speeds of its own, and says so.
    speed = seen["ceebert"]["layer_speedup"]["mean"]
    assert speed in [pytest.approx(own) for own, _ in slow_bandits(BASE)]
    assert speed != 2.0


@pytest.fixture
def seeds(tmp_path):
    """Three runs of each of two labels, and their traces."""
    joint = [same_rows(BASE, seed=20 + number) for number in range(3)]
    ours = [same_rows(BASE, seed=30 + number, noise=0.3) for number in range(3)]
    made = [
        subject(tmp_path, f"j{n}", one, label="ceebert", method="joint-entropy")
        for n, one in enumerate(joint)
    ]
    made += [subject(tmp_path, f"d{n}", one, label="de3") for n, one in enumerate(ours)]
    return made, joint, ours


def test_runs_are_paired_at_their_own_speeds(seeds):
    made, joint, ours = seeds
    seen = numbers_of(made, speeds=[2.0])["at"]["2"]
    each = [slow_bandits(trace) for trace in joint]
    # One mu for all runs, the one whose mean speed is nearest.
    place = min(
        range(len(MUS)), key=lambda i: abs(np.log(mean([runs[i][0] for runs in each]) / 2.0))
    )
    speeds, theirs = zip(*(runs[place] for runs in each), strict=True)
    mine = [
        slow_score(trace, "edr(lambda=1.0)", speed)
        for trace, speed in zip(ours, speeds, strict=True)
    ]
    assert seen["ceebert"]["layer_speedup"]["values"] == pytest.approx(speeds)
    assert seen["de3"]["layer_speedup"]["values"] == pytest.approx(speeds)
    assert seen["de3"]["score"]["values"] == pytest.approx(mine)
    assert seen["de3"]["score"]["sd"] == pytest.approx(stdev(mine))
    gains = [a - b for a, b in zip(mine, theirs, strict=True)]
    assert seen["de3"]["difference"]["values"] == pytest.approx(gains)
    assert seen["de3"]["difference"]["mean"] == pytest.approx(mean(gains))
    test = ttest_rel(mine, theirs, alternative="greater")
    assert seen["de3"]["test"]["p"] == pytest.approx(test.pvalue)


def test_mean_curves_run_through_the_mean_scores(seeds):
    made, joint, ours = seeds
    found = numbers_of(made)["curves"]
    line, dots = found["de3"], found["ceebert"]
    assert (line["kind"], dots["kind"], len(dots["score"])) == ("line", "points", len(MUS))
    for place in (0, 17, 40):
        speed = line["layer_speedup"][place]
        each = [slow_score(trace, "edr(lambda=1.0)", speed) for trace in ours]
        assert line["score"][place] == pytest.approx(mean(each), abs=1e-4)
        assert line["sd"][place] == pytest.approx(stdev(each), abs=1e-3)
    each = [slow_bandits(trace)[3] for trace in joint]
    assert dots["layer_speedup"][3] == pytest.approx(mean([speed for speed, _ in each]), abs=1e-5)
    assert dots["score"][3] == pytest.approx(mean([score for _, score in each]), abs=1e-5)


def made_up(runs=1):
    """Numbers as in the paper's table."""

    def one(score, speed, gain=None, p=None):
        def about(value):
            return {"mean": value, "sd": 0.001 if runs > 1 else None, "n": runs}

        seen = {"score": about(score), "layer_speedup": about(speed), "policy": None}
        test = {} if gain is None else {"difference": about(gain), "test": {"p": p}}
        return {**seen, **test}

    curve = {"kind": "line", "layer_speedup": [1, 3], "score": [0.9, 0.8], "sd": None}
    full = {"mean": 0.9, "sd": None, "n": 1}
    rule = {"families": ["edr(lambda=1.0)"] * runs, "methods": ["de3"] * runs, "full": full}
    labels = ("ceebert", "de3", "de3 adapted")
    return {
        "metric": "accuracy", "rows": 10000, "runs": runs, "reference": "ceebert",
        "rules": dict.fromkeys(labels, rule),
        "at": {
            "3": {
                "ceebert": one(0.81, 2.95),
                "de3": one(0.806, 2.96, -0.004, 0.93),
                "de3 adapted": one(0.813, 2.94, 0.003, 0.0312),
            },
            "9": {"ceebert": one(0.6, 9), "de3": None, "de3 adapted": one(0.7, 9, 0.1)},
        },
        "curves": dict.fromkeys(labels, curve),
    }  # fmt: skip


def test_the_table_has_the_form_of_the_papers():
    table, details, rules = SHIFT.tables(made_up(runs=5))
    assert table.columns == ("rule", "wanted 3x", "wanted 9x")
    assert table.cells() == [
        ["ceebert", "81.0 (2.95x)", "60.0 (9.00x)"],
        ["de3", "-0.4 (2.96x)", "-"],
        ["de3 adapted", "+0.3 (2.94x)", "+10.0 (9.00x)"],
    ]
    assert "n = 10000, 5 runs" in table.note
    assert details.cells()[2] == [
        "3x", "de3 adapted", "2.94x", "0.8130 ± 0.0010", "+0.0030 ± 0.0010", "0.0312",
    ]  # fmt: skip
    assert details.cells()[4] == ["9x", "de3", "-", "-", "-", "-"]
    assert rules.cells()[1] == ["de3", "edr(lambda=1.0)", "0.9000"]


def test_figures_come_from_numbers_alone(four, tmp_path):
    for name, numbers in (("a", numbers_of(four)), ("b", made_up(runs=5))):
        for kind in ("png", "svg"):
            path = tmp_path / f"{name}.{kind}"
            SHIFT.draw(path, numbers)
            assert path.stat().st_size > 5000
        drawn = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert f"n = {numbers['rows']}" in drawn


def test_what_is_out_of_reach_has_no_number(tmp_path):
    half = BASE.only([3])  # exits at 3 and 6: at most twice as fast
    made = [
        subject(tmp_path, "a", BASE, label="joint-entropy"),
        subject(tmp_path, "b", half, label="half"),
    ]
    seen = numbers_of(made)["at"]
    assert seen["2"]["half"] is not None
    assert seen["3"]["half"] is None
    with pytest.raises(UsageError, match=r"half does not reach .* of 3, only 2\. .*--speed"):
        numbers_of(made, reference="half")


def test_a_model_without_exits_has_the_one_speed_it_has(tmp_path):
    made = [
        subject(tmp_path, "a", BASE.only([]), label="full", method="full"),
        subject(tmp_path, "b", BASE, label="joint-entropy"),
    ]
    seen = numbers_of(made, speeds=[2.0])["at"]["2"]
    assert [seen[label]["layer_speedup"]["mean"] for label in seen] == [1.0, 1.0]
    assert seen["joint-entropy"]["difference"]["mean"] == 0.0


def test_requests_that_do_not_fit(four, tmp_path):
    with pytest.raises(UsageError, match="2 or more kinds"):
        numbers_of(four[:1])
    with pytest.raises(UsageError, match=r"ceebrt.*ceebert"):
        numbers_of(four, reference="ceebrt")
    more = [*four, subject(tmp_path, "e", DE3, label="de3")]
    with pytest.raises(UsageError, match="as many runs; got ceebert 1, joint-entropy 1, de3 2"):
        numbers_of(more)
    one = make_trace(BASE.logits, np.zeros(150, dtype=int), BASE.distances)
    with pytest.raises(UsageError, match="one class"):
        numbers_of([subject(tmp_path, name, one, label=name) for name in ("de3", "ceebert")])
    bare = replace(BASE, labels=None)
    with pytest.raises(UsageError, match="labels, so nothing can be scored"):
        numbers_of([subject(tmp_path, name, bare, label=name) for name in ("de3", "ceebert")])
