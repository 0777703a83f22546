"""Families: a policy with its number left open."""

from __future__ import annotations

import pytest

from de3bert.errors import UsageError
from de3bert.exits import Signal
from de3bert.exits.family import Family


@pytest.mark.parametrize(
    ("text", "printed", "number", "policy"),
    [
        ("entropy", "entropy", 0.25, "entropy < 0.25"),
        ("edr", "edr(lambda=1.0)", 0.4, "edr(lambda=1.0) < 0.4"),
        ("edr( lambda=2 ) x 3", "edr(lambda=2.0) x 3", 0.4, "edr(lambda=2.0) < 0.4 x 3"),
        ("max_probability x 2", "max_probability x 2", 0.9, "max_probability > 0.9 x 2"),
        ("patience", "patience", 3.0, "patience(3)"),
        ("layers", "layers", 6.0, "layer(6)"),
        ("oracle", "oracle", 0.0, "oracle"),
    ],
)
def test_parse_print_and_members(text, printed, number, policy):
    family = Family.parse(text)
    assert str(family) == printed
    assert Family.parse(printed) == family
    assert str(family.policy(number)) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entropi", 'Did you mean "entropy"'),
        ("patiense", 'Did you mean "patience"'),
        ("", "Unknown policy family"),
        ("entropy x 0", "whole number from 1"),
        ("entropy x two", "whole number from 1"),
        ("edr(lambda=-1)", ">= 0"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(UsageError, match=message):
        Family.parse(text)


def test_of_takes_text_signals_and_a_count():
    expected = Family.parse("entropy x 2")
    assert Family.of("entropy", 2) == Family.of(Signal("entropy"), 2) == Family.of(expected)
    with pytest.raises(UsageError, match="goes with a signal"):
        Family.of("patience", 2)
    with pytest.raises(UsageError, match="from 1"):
        Family.of("entropy", 0)
