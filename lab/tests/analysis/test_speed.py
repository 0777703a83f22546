"""Layers, time and operations: arithmetic on known times, and runs that claim nothing on time."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.bench.fakes import Time
from tests.exits.traces import random_trace

from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits import Policy, replay
from de3bert.exits.family import Family
from de3lab.analysis import ANALYSES, Subject, analyse
from de3lab.analysis.speed import PAPER, PAPER_RATIOS
from de3lab.analysis.speed_timing import (
    TimedPolicy,
    efficiency,
    matched_thresholds,
    time_policies,
)
from de3lab.statistics import pearson

LAYERS, SECONDS, FLOPS = ([row[column] for row in PAPER] for column in (1, 2, 3))


def timed(name: str, layers: Any, seconds: Any) -> TimedPolicy:
    return TimedPolicy(name, np.asarray(layers), np.asarray(seconds, dtype=float))


def test_the_paper_s_own_correlations():
    time, flops = pearson(LAYERS, SECONDS), pearson(LAYERS, FLOPS)
    assert time["value"] == pytest.approx(0.9643, abs=5e-5)
    assert flops["value"] == pytest.approx(0.99998, abs=5e-6)
    # Fisher: atanh r +- 1.96 / sqrt(n - 3)
    reach = 1.959964 / math.sqrt(len(PAPER) - 3)
    for bound, sign in (("low", -1), ("high", 1)):
        expected = math.tanh(math.atanh(time["value"]) + sign * reach)
        assert time[bound] == pytest.approx(expected, abs=1e-6)


def test_the_paper_s_own_efficiency():
    measured = [timed(str(row[0]), [row[1]], [[row[2]]]) for row in PAPER]
    found = efficiency(timed("full", [10464], [[20.0]]), measured, 10464 / 3332, seed=0)
    assert found["layer_ratio"] == pytest.approx(3.1405, abs=1e-4)
    assert found["time_ratio"]["value"] == pytest.approx(17.07 / 11.46)
    assert found["percent_of_ideal"] == pytest.approx(47.43, abs=0.01)
    assert found["time_ratio_untested"]["value"] == pytest.approx(20.0 / 11.46)
    assert found["time_ratio"]["low"] == found["time_ratio"]["high"]  # one text has no others


def texts_at(depths: list[int], per_layer: float, fixed: float) -> TimedPolicy:
    """Texts that leave at `depths`; one round in three was disturbed."""
    seconds = fixed + per_layer * np.array(depths)
    return timed("", depths, np.stack([seconds, seconds + 9, seconds], axis=1))


def test_time_that_follows_layers_is_ideal():
    rng = np.random.default_rng(0)
    depths = [[12] * 30, rng.integers(4, 9, 30).tolist(), [1] * 30]
    for fixed, low, high in ((0.0, 2.999, 3.001), (0.05, 1.5, 2.9)):
        measured = [texts_at(each, 0.01, fixed) for each in depths]
        found = efficiency(measured[0], measured, 3.0, seed=1)
        assert low <= found["time_ratio"]["value"] <= high
        assert found["time_ratio"]["low"] <= found["time_ratio"]["value"]
        assert found["time_ratio"]["value"] <= found["time_ratio"]["high"]
    # (12 * 0.01 + 0.05) / (4 * 0.01 + 0.05), since interpolation is exact on a line
    assert found["time_ratio"]["value"] == pytest.approx(0.17 / 0.09)
    assert found["percent_of_ideal"] == pytest.approx(100 * 0.17 / 0.09 / 3)


def test_out_of_reach_is_no_number():
    measured = [texts_at([12] * 5, 0.01, 0.0), texts_at([8] * 5, 0.01, 0.0)]
    assert efficiency(measured[0], measured, 3.0, seed=0) is None


def test_thresholds_that_save_as_many_layers():
    trace = random_trace(150, 6, 2, seed=5)
    family = Family.parse("entropy")
    taus = matched_thresholds(trace, family, [1.0, 1.5, 3.0, 6.0])
    means = [replay(trace, family.policy(tau)).exit_layers.mean() for tau in taus]
    assert means == pytest.approx([6.0, 4.0, 2.0, 1.0], abs=0.5 * 5 / 150 + 1e-9)
    unlabelled = type(trace)(**{**vars_of(trace), "labels": None})
    assert matched_thresholds(unlabelled, family, [1.0, 1.5, 3.0, 6.0]) == taus
    assert len(matched_thresholds(trace, family, [2.0, 2.0, 2.0])) == 1


def vars_of(trace: Any) -> dict[str, Any]:
    return {name: getattr(trace, name) for name in trace.__dataclass_fields__}


@dataclass
class FakeClassifier:
    """Takes as many milliseconds as the text has letters, times the depth of the policy."""

    time: Time
    calls: int = 0

    def predict(self, texts: list[str], *, policy: Policy) -> list[Any]:
        depth = int(str(policy).strip("layer()"))
        self.calls += 1
        self.time.pass_by(1e-3 * len(texts[0]) * depth)
        return [type("Answer", (), {"exit_layer": depth})()]


def test_texts_are_timed_alone_and_in_turn():
    time = Time()
    fake = FakeClassifier(time)
    policies = {name: Policy.parse(f"layer({name})") for name in ("1", "3")}
    texts = ["a", "abc"]
    found = time_policies(fake, texts, policies, rounds=2, seed=0, clock=time.clock)
    assert [each.layers.tolist() for each in found] == [[1, 1], [3, 3]]
    np.testing.assert_allclose(found[0].seconds, [[1e-3, 1e-3], [3e-3, 3e-3]])
    np.testing.assert_allclose(found[1].typical, [3e-3, 9e-3])
    assert fake.calls == 2 * 2 * (1 + 2)  # a pass that is not timed, and two rounds
    with pytest.raises(UsageError, match="got 0 \\(--rounds\\)"):
        time_policies(fake, texts, policies, rounds=0, seed=0, clock=time.clock)


def numbers_of(subject, **settings):
    return analyse("speed", [subject], settings, "de3 analyze speed ...").numbers


QUICK = {"rows": 5, "rounds": 1}


@pytest.mark.parametrize("place", ["trained_model", "trained_bundle"])
def test_on_a_model(request, toy_data, tmp_path, place):
    path, table = str(request.getfixturevalue(place)), read_table(toy_data.test)
    subject = Subject("de3", path, table)
    found = numbers_of(subject, **QUICK)
    assert (found["rows"], found["rounds"], found["matched"]) == (5, 1, True)
    assert found["runtime"] == ("onnx" if place == "trained_bundle" else "torch")
    layers = [each["layers"] for each in found["thresholds"]]
    assert layers[0] == found["full"]["layers"] == 5 * 4
    assert layers == sorted(layers, reverse=True)
    assert layers[-1] < 5 * 4
    assert found["thresholds"][0]["flops"] > found["full"]["flops"]  # exits are tested on the way
    assert found["correlations"]["flops"]["value"] > 0.95
    assert all(each["seconds"] > 0 for each in found["thresholds"])
    again = json.loads(json.dumps(found))
    measured, correlations, worth = ANALYSES["speed"].tables(again)
    assert len(measured.rows) == 1 + len(layers)
    assert [row[-1] for row in correlations.rows] == ["0.99", "0.96"]
    assert worth.rows[-1] == ("paper", "3.14x", "1.49x", None, "47 %")
    ANALYSES["speed"].draw(tmp_path / "figure.png", again)


def test_layers_and_operations_are_those_of_the_answers(trained_model, toy_data):
    table = read_table(toy_data.test, limit=5)
    subject = Subject("de3", str(trained_model), table)
    taus = [0.0, 0.4, 0.5, 0.6, 1.0]
    found = numbers_of(subject, tau=taus, family="entropy", **QUICK)
    classifier = subject.classifier
    one = {n: 2 * n * (4 * 32**2 + 2 * 32 * 64) + 4 * n**2 * 32 for n in range(30)}
    for each in found["thresholds"]:
        answers = classifier.predict(table.inputs(), policy=f"entropy < {each['tau']}")
        left = [answer.exit_layer for answer in answers]
        assert each["layers"] == sum(left)
        assert each["layer_speedup"] == pytest.approx(5 * 4 / sum(left))
        lengths = [len(row["input_ids"]) for row in classifier.encode(table.inputs()).rows]
        expected = 0
        for tokens, layer in zip(lengths, left, strict=True):
            inside = min(layer, 3)  # exits with a projection and two distances
            expected += layer * one[tokens] + layer * (2 * tokens * 32 + 2 * 32 * 2)
            expected += inside * (2 * 32 * 32 + 2 * 32 * 2)
        assert each["flops"] == expected
    assert not found["matched"]


def test_what_is_refused(trained_model, toy_data, tmp_path):
    subject = Subject("de3", str(trained_model), read_table(toy_data.test, limit=5))
    for settings, words in (
        ({"tau": [0.1, 0.2, 0.3, 0.3]}, "at least 4 different thresholds .* got 3"),
        ({"family": "patience"}, "`patience` has none"),
        ({"tau": [-1.0, -2.0, -3.0, -4.0]}, "only 1 different numbers of layers"),
        ({"rounds": 0}, "got 0 \\(--rounds\\)"),
        ({"rows": 0}, "got 0 \\(--rows\\)"),
        ({"family": "certainty"}, "router"),
    ):
        with pytest.raises(UsageError, match=words):
            numbers_of(subject, **{**QUICK, **settings})
    random_trace(5, 4, 2).save(tmp_path / "t.trace")
    with pytest.raises(UsageError, match=r"runs the model, and .* is a trace"):
        numbers_of(Subject("de3", str(tmp_path / "t.trace")))
    with pytest.raises(UsageError, match="--data FILE"):
        numbers_of(Subject("de3", str(trained_model)))


def test_ratios_of_the_paper():
    assert PAPER_RATIOS[0] == 1.0
    assert PAPER_RATIOS[5] == pytest.approx(2.789656, abs=1e-6)
    assert PAPER_RATIOS[-1] == 12.0
