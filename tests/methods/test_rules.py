"""Every method's exit rule on written traces: declaration, family, policy, replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import constant_predictions, make_trace, random_trace

from de3bert.exits import Policy, Trace, replay
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.family import Family
from de3bert.exits.layer_speedup import layer_speedup
from de3bert.exits.rules import Threshold
from de3bert.exits.signals.formulas import probabilities
from de3bert.methods import METHODS

BISECTIONS = 40


def family(method: str, number: int = 0) -> Family:
    return Family.parse(METHODS[method].families[number])


def leaves_at(trace: Trace, policy: Policy) -> list[int]:
    return [int(layer) for layer in replay(trace, policy).exit_layers]


def of_chances(chances: object, **changes: object) -> Trace:
    """Rows whose exits have these probabilities, (rows, exits, classes)."""
    return make_trace(np.log(np.asarray(chances, dtype=np.float64)), **changes)


def of_confidences(table: list[list[float]], **changes: object) -> Trace:
    """Rows of two classes whose exits are as sure as this of the first, (rows, exits)."""
    sure = np.asarray(table)
    return of_chances(np.stack([sure, 1 - sure], axis=-1), **changes)


def of_entropies(table: list[list[float]]) -> Trace:
    """Rows of two classes with these normalised entropies at their exits, (rows, exits)."""
    wanted = np.asarray(table)
    low, high = np.full(wanted.shape, 0.5), np.full(wanted.shape, 1 - 1e-15)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found = -(middle * np.log2(middle) + (1 - middle) * np.log2(1 - middle))
        low, high = np.where(found > wanted, middle, low), np.where(found > wanted, high, middle)
    return of_confidences(low.tolist())


# Four layers and three classes; the distance to the third class is never looked at.
GOLDEN = of_chances(
    [[[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.9, 0.08, 0.02], [0.9, 0.05, 0.05]]],
    distances=[[[0.6, 0.3, 2.0], [0.2, 0.8, 2.0], [0.1, 0.9, 2.0]]],
)
ENTROPY_EXITS = [(0.25, 4), (0.4, 3), (0.75, 2), (0.9, 2), (1.0, 1)]
EDR_EXITS = [(0.0, 4), (0.05, 4), (0.1, 3), (0.2, 3), (0.22, 2), (0.8, 2), (0.9, 1)]
FUSED = ("de3", "de3-v2", "de3-v3", "de3-no-pn", "de3-no-pn-no-dar", "de-cosee", "de3-fitted")
PLAIN = ("joint-entropy", "joint-entropy-calibrated", "mixed", "deebert", "fastbert", "gpfee")


@pytest.mark.parametrize("method", PLAIN)
@pytest.mark.parametrize(("tau", "layer"), ENTROPY_EXITS)
def test_entropy(method: str, tau: float, layer: int) -> None:
    assert leaves_at(GOLDEN, family(method).policy(tau)) == [layer]


@pytest.mark.parametrize("method", FUSED)
@pytest.mark.parametrize(("tau", "layer"), EDR_EXITS)
def test_edr(method: str, tau: float, layer: int) -> None:
    """Lambda is 1 until calibration writes another one into the signal."""
    assert METHODS[method].options.get("lambda", 1.0) == 1.0
    assert leaves_at(GOLDEN, family(method).policy(tau)) == [layer]


@pytest.mark.parametrize("method", ["deebert", "gpfee"])
def test_thresholds_in_nats_are_ours_times_log_k(method: str) -> None:
    """The authors compare H with tau; we compare H / log K, which any number of classes can use."""
    trace = random_trace(rows=200, classes=3)
    chances = probabilities(trace.logits.astype(np.float64))
    nats = -(chances * np.log(chances)).sum(-1)
    for tau in (0.2, 0.5, 0.9):
        passed = nats[:, :-1] < tau
        first = np.where(passed.any(1), passed.argmax(1), trace.exits - 1) + 1
        assert leaves_at(trace, family(method).policy(tau / np.log(3))) == first.tolist()


@pytest.mark.parametrize("method", ["pabee", "leebert"])
@pytest.mark.parametrize(
    ("answers", "patience", "layer"),
    [([1, 1, 0, 0, 0, 0, *[1] * 6], 3, 6), ([1] * 12, 1, 2), ([1] * 12, 6, 7),
     ([1] * 12, 12, 12), ([0, 1] * 6, 1, 12)],
)  # fmt: skip
def test_patience(method: str, answers: list[int], patience: int, layer: int) -> None:
    assert leaves_at(constant_predictions(answers), family(method).policy(patience)) == [layer]


@pytest.mark.parametrize(("number", "layer"), [(0, 5), (1, 6), (2, 11)])
def test_low_entropy_several_times_running(number: int, layer: int) -> None:
    """2, 3 and 4 exits in a row below 0.2; labels need not agree."""
    trace = of_entropies([[0.9, 0.1, 0.3, 0.1, 0.1, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1]])
    policy = family("pcee", number).policy(0.2)
    assert isinstance(policy.rule, Threshold)
    assert policy.rule.count == number + 2
    assert leaves_at(trace, policy) == [layer]
    turned = replace(trace, logits=trace.logits[..., ::-1] * np.array([1, -1] * 6)[:, None])
    assert len(set(turned.predictions[0])) == 2
    assert leaves_at(turned, policy) == [layer]
    for level, first in ((0.1, number + 2), (0.9, 12)):
        assert leaves_at(of_entropies([[level] * 12]), policy) == [first]


@pytest.mark.parametrize("method", ["righttool", "cascadebert", "cascade-truncated"])
def test_confidence(method: str) -> None:
    trace = of_confidences([[0.6, 0.8, 0.85, 0.9], [0.75, 0.7, 0.9, 0.95], [0.55, 0.6, 0.7, 0.8]])
    for tau, layers in [(0.5, [1, 1, 1]), (0.72, [2, 1, 4]), (0.88, [4, 3, 4]), (1.0, [4, 4, 4])]:
        assert leaves_at(trace, family(method).policy(tau)) == layers


def test_a_cascade_pays_for_both_models() -> None:
    """321 of 408 rows leave at cost 2, the others at 14: the published 2.632258."""
    sure = [[0.95, 0.9]] * 321 + [[0.7, 0.9]] * 87
    trace = of_confidences(sure, exit_layers=(2, 14), base_depth=12)
    found = leaves_at(trace, family("cascadebert").policy(0.8))
    assert layer_speedup(found, trace.base) == pytest.approx(2.632258, abs=5e-7)


def test_energy() -> None:
    """S = 1 / (1 + sum exp z); [0, 0] and [-2, -2] are equally unsure and differ in energy."""
    logits = [[2.0, -1.0], [0.0, 0.0], [3.0, -3.0], [-2.0, -2.0]]
    values = [0.114195, 1 / 3, 0.047314, 0.786986]
    for row, value in zip(logits, values, strict=True):
        trace = make_trace([[row, row]])
        assert leaves_at(trace, family("cosee").policy(value + 1e-6)) == [1]
        assert leaves_at(trace, family("cosee").policy(value - 1e-6)) == [2]


@pytest.mark.parametrize("method", ["berxit", "consistentee"])
def test_certainty(method: str) -> None:
    """The policy of ConsistentEE leaves at more than 0.5; nobody asks at the last exit."""
    sure = [[0.2, 0.5, 0.51], [0.5, 0.5, 0.5], [0.9, 0.1, 0.1]]
    trace = make_trace(np.zeros((3, 4, 2)), certainty=np.asarray(sure))
    assert leaves_at(trace, family(method).policy(0.5)) == [3, 4, 1]
    assert leaves_at(trace, family(method).policy(0.1)) == [1, 1, 1]


def test_a_stream_through_the_bandit() -> None:
    """The golden mu o is 0, .04, .08, .12; ours is mu layer / depth, the same where rows leave."""
    stream = [[0.6, 0.8, 0.85, 0.9], [0.75, 0.7, 0.9, 0.95], [0.55, 0.6, 0.7, 0.8],
              [0.92, 0.95, 0.97, 0.99], [0.65, 0.72, 0.8, 0.97]]  # fmt: skip
    declared = family("ceebert")
    policy = replace(declared, bandit=BanditRule(arms=(0.5, 0.7, 0.9), c=1.0)).policy(0.12)
    assert policy.sequential
    assert leaves_at(of_confidences(stream), policy) == [1, 1, 4, 1, 1]
    assert isinstance(policy.rule, BanditRule)
    bandit = policy.rule.fresh((1, 2, 3, 4))
    played = []
    for seen, left in zip(stream, [1, 1, 4, 1, 1], strict=True):
        played.append(bandit.choose())
        bandit.learn(played[-1], left - 1, seen[0], seen[left - 1])
    assert (played, bandit.plays) == ([0, 1, 2, 2, 0], [2, 1, 2])
    assert bandit.gains == pytest.approx([0, 0, 0.065])


@pytest.mark.parametrize(("pattern", "layer"), [("1011", 1), ("0000", 4), ("0100", 2), ("0110", 2)])
def test_oracle(pattern: str, layer: int) -> None:
    trace = constant_predictions([1 - int(right) for right in pattern])
    assert leaves_at(trace, family("oracle").policy(0)) == [layer]


FIXED = ["full", "layers-k", "distilbert", "pd", "pkd", "theseus", "hashee"]


@pytest.mark.parametrize("method", FIXED)
def test_models_with_one_exit_leave_there(method: str) -> None:
    trace = make_trace(np.zeros((2, 1, 2)), exit_layers=(6,), base_depth=12)
    found = leaves_at(trace, family(method).policy(6))
    assert found == [6, 6]
    assert layer_speedup(found, trace.base) == 2.0


@pytest.mark.parametrize(
    ("method", "window", "layers"), [("sentee", None, [2] * 6), ("tokee", 3, [2, 2, 2, 1, 2, 2])]
)
def test_words(method: str, window: int | None, layers: list[int]) -> None:
    """Of .1 .5 .05 .08 .02 .3 one word alone has two sure neighbours; the sentence is as its .5."""
    unsure = [0.1, 0.5, 0.05, 0.08, 0.02, 0.3]
    made = of_entropies([[value, 0.0001] for value in unsure])
    trace = replace(made, sentence=np.zeros(6, dtype=int))
    found = replay(trace, replace(family(method).policy(0.09), window=window))
    assert found.exit_layers.tolist() == layers
    all_sure = replace(family(method).policy(0.51), window=window)
    assert replay(trace, all_sure).exit_layers.tolist() == [1] * 6


# What the authors write. Curves and calibration are strict throughout: their thresholds lie between
# two values, where it makes no difference. A policy that is written by hand may be either.
PUBLISHED = {
    "deebert": "<", "righttool": ">=", "fastbert": "<=", "berxit": ">", "pcee": "<", "gpfee": "<",
    "cosee": "<", "consistentee": ">", "cascadebert": ">", "cascade-truncated": ">",
    "sentee": "<", "tokee": "<",
    "de3": "<", "de3-words": "<",
}  # fmt: skip


@pytest.mark.parametrize("method", PUBLISHED)
def test_a_signal_on_the_threshold(method: str) -> None:
    trace, declared = random_trace(rows=1, exits=3), family(method)
    assert declared.signal is not None
    value = float(declared.signal(trace.view(0))[0])
    ours = declared.policy(value).rule
    assert isinstance(ours, Threshold)
    assert ours.comparison == PUBLISHED[method][0]
    assert leaves_at(trace, Policy(replace(ours, count=1)))[0] > 1
    theirs = Policy.parse(f"{declared.signal} {PUBLISHED[method]} {value!r}")
    assert (leaves_at(trace, theirs) == [1]) == PUBLISHED[method].endswith("=")


def test_every_method_is_here() -> None:
    others = {"pabee", "leebert", "ceebert", "oracle"}
    assert {*FUSED, *PLAIN, *FIXED, *PUBLISHED, *others} == set(METHODS)
