"""The form of a rule in a graph: which policies it has, and with which numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy
from de3bert.exits.bandit import Bandit
from de3bert.exits.rule_form import IN_GRAPHS, RuleForm, form_of
from de3bert.exits.signals.parse import SIGNALS

FORMS = [*IN_GRAPHS, "patience", *(f"patience({name})" for name in IN_GRAPHS)]


@pytest.mark.parametrize("text", FORMS)
def test_a_form_is_read_as_it_is_written(text):
    assert str(RuleForm.parse(text)) == text


@pytest.mark.parametrize("text", ["", "entropi", "patience()", "patience(patience)", "edr < 0.4"])
def test_what_is_no_form(text):
    with pytest.raises(De3Error, match="no rule of the form"):
        RuleForm.parse(text)


@pytest.mark.parametrize(
    ("form", "line", "numbers"),
    [
        ("edr", "edr(lambda=2) < 0.25", {"threshold": 0.25, "lambda": 2.0, "max_layers": 12}),
        ("edr", "entropy < 0.25", {"threshold": 0.25, "lambda": 0.0, "max_layers": 12}),
        ("edr", "full", {"threshold": -1.0, "lambda": 0.0, "max_layers": 12}),
        ("edr", "layer(3)", {"threshold": -1.0, "lambda": 0.0, "max_layers": 3}),
        ("entropy", "entropy < 0.25", {"threshold": 0.25, "max_layers": 12}),
        ("max_probability", "full", {"threshold": 2.0, "max_layers": 12}),
        ("patience", "patience(3)", {"patience": 3, "max_layers": 12}),
        ("patience", "full", {"patience": 1_000_000, "max_layers": 12}),
        (
            "patience(edr)",
            "entropy < 0.5 x 2",
            {"threshold": 0.5, "lambda": 0.0, "patience": 2, "max_layers": 12},
        ),
        (
            "patience(energy)",
            "energy < 0.5",
            {"threshold": 0.5, "patience": 1, "max_layers": 12},
        ),
    ],
)
def test_the_numbers_of_a_policy(form, line, numbers):
    found = RuleForm.parse(form).values(Policy.parse(line), 12)
    assert found == numbers
    assert tuple(found) == RuleForm.parse(form).inputs
    assert RuleForm.parse(form).fits(Policy.parse(line))


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("entropy", "edr < 0.4"),
        ("entropy", "entropy < 0.4 x 2"),
        ("edr", "distance_ratio < 0.4"),
        ("edr", "patience(3)"),
        ("patience", "entropy < 0.4"),
        ("patience(entropy)", "patience(3)"),
        ("entropy", "entropy < 0.4 window 3"),
        ("max_probability", "bandit"),
        ("entropy", "oracle"),
    ],
)
def test_what_a_form_has_not(form, line):
    with pytest.raises(UsageError, match=r"is not of the form|is more than"):
        RuleForm.parse(form).values(Policy.parse(line), 12)
    assert not RuleForm.parse(form).fits(Policy.parse(line))


@pytest.mark.parametrize(
    ("line", "others", "form"),
    [
        ("entropy < 0.2", [], "entropy"),
        ("entropy < 0.2", ["edr < 0.4"], "edr"),
        ("entropy < 0.2", ["energy < 0.4", "patience(2)", "layer(2)"], "entropy"),
        ("entropy < 0.2", ["entropy < 0.4 x 3"], "patience(entropy)"),
        ("entropy < 0.2", ["edr < 0.4 x 3"], "patience(edr)"),
        ("edr < 0.2", ["entropy < 0.3"], "edr"),
        ("edr < 0.2", ["energy < 0.3 x 2"], "edr"),
        ("certainty > 0.9 x 2", [], "patience(certainty)"),
        ("patience(4)", ["entropy < 0.2"], "patience"),
    ],
)
def test_a_form_is_as_general_as_the_points_ask(line, others, form):
    found = form_of(Policy.parse(line), [Policy.parse(other) for other in others])
    assert str(found) == form
    assert found.fits(Policy.parse(line))


KEEP = "keep(mean=3.0, along=5.0:0.1/3.0:0.4/1.5:0.9, rate=0.01, every=8) entropy"


@pytest.mark.parametrize("line", ["bandit", KEEP, "entropy < 0.2 window 3"])
def test_policies_without_a_form_say_why(line):
    with pytest.raises(UsageError, match=r"does more than compare|is more than a rule"):
        form_of(Policy.parse(line))


def test_a_rule_that_learns_fits_no_form():
    trial = Bandit((0.5,), (1.0,), c=1.0, mu=0.1).trial()
    assert not RuleForm.parse("max_probability").fits(Policy(trial))


def test_a_kind_of_policy_of_ones_own_has_no_form():
    class Imposed(Policy):
        """What the laboratory times with."""

    imposed = Imposed(Policy.parse("entropy < 0.2").rule)
    assert not RuleForm("entropy").fits(imposed)
    with pytest.raises(UsageError, match="more than a rule"):
        form_of(imposed)


def test_signals_without_nodes_are_named(monkeypatch):  # those that plugins bring
    monkeypatch.setitem(SIGNALS._parts, "doubt", SIGNALS["entropy"])
    with pytest.raises(UsageError, match="the signal doubt has no nodes"):
        form_of(Policy.parse("doubt < 0.5"))


NUMBERS = st.floats(0, 1) | st.sampled_from([0.0, 1e-50, 1e-300, 0.1, 0.4, 0.7, 1.0])


@given(threshold=NUMBERS, value=st.floats(0, 1), op=st.sampled_from(["<", "<="]))
def test_32_bits_let_go_whatever_the_policy_lets_go(threshold, value, op):
    number = RuleForm("entropy").values(Policy.parse(f"entropy {op} {threshold!r}"), 3)["threshold"]
    short = np.float32(number)
    assert float(short) == pytest.approx(threshold, rel=3e-7, abs=3e-45)
    passes = value < threshold if op == "<" else value <= threshold
    if passes:
        assert value < float(short)
    if value < float(np.nextafter(short, np.float32(-math.inf))):  # no number between lets less go
        assert passes


@given(threshold=NUMBERS, value=st.floats(0, 1), op=st.sampled_from([">", ">="]))
def test_32_bits_of_a_rising_signal(threshold, value, op):
    policy = Policy.parse(f"max_probability {op} {threshold!r}")
    short = np.float32(RuleForm("max_probability").values(policy, 3)["threshold"])
    passes = value > threshold if op == ">" else value >= threshold
    if passes:
        assert value > float(short)
    if value > float(np.nextafter(short, np.float32(math.inf))):
        assert passes
