"""Declarations name parts that exist; options are checked where they are given."""

from __future__ import annotations

import pytest

from de3bert.errors import UsageError
from de3bert.exits.signal import Signal
from de3bert.methods import METHODS, Method, Term
from de3bert.model.pooling import POOLINGS
from de3bert.objective import LOSSES
from de3bert.objective.distance import DAR_FORMS


@pytest.mark.parametrize("name", METHODS)
def test_every_declaration_names_parts_that_exist(name: str) -> None:
    method = METHODS[name]
    assert method.name == name
    assert method.summary
    assert method.citation
    assert method.terms
    for term in method.terms:
        assert term.loss in LOSSES
        if isinstance(term.weight, str):
            assert isinstance(method.options[term.weight], float)
    assert method.pooling is None or method.pooling in POOLINGS
    assert Signal(method.signal).needs_distances <= (method.prototypes != "none")
    assert method.options.get("dar", "none") in DAR_FORMS


def test_de3_is_the_papers() -> None:
    de3 = METHODS["de3"]
    assert de3.terms == (Term("cross_entropy"), Term("distance", weight="alpha"))
    assert de3.prototypes == "linear"
    assert dict(de3.options) == {
        "alpha": 0.1,
        "dar": "center",
        "beta": 1.0,
        "gamma": 0.5,
        "lambda": 1.0,
    }


def test_given_options_replace_defaults_and_nothing_else() -> None:
    de3 = METHODS["de3"]
    before = dict(de3.options)
    assert de3.resolve({}) == before
    assert de3.resolve({"lambda": 1.5, "dar": "none"}) == {**before, "lambda": 1.5, "dar": "none"}
    assert dict(de3.options) == before
    assert de3.resolve({"alpha": 1})["alpha"] == 1


def test_wrong_options_say_what_is_accepted() -> None:
    de3 = METHODS["de3"]
    with pytest.raises(UsageError, match=r'option of method de3 "alfa"\. Did you mean "alpha"'):
        de3.resolve({"alfa": 0.1})
    with pytest.raises(UsageError, match=r"Option alpha of method de3 is a number, got '0\.1'"):
        de3.resolve({"alpha": "0.1"})
    with pytest.raises(UsageError, match=r"Option dar of method de3 is a word, got 1\.0"):
        de3.resolve({"dar": 1.0})
    with pytest.raises(UsageError, match="Available: none"):
        METHODS["full"].resolve({"alpha": 0.1})
    with pytest.raises(UsageError, match=r'method "joint_entropy"\. Did you mean "joint-entropy"'):
        METHODS["joint_entropy"]


def test_a_method_is_data() -> None:
    method = Method("m", "s", "c", (Term("cross_entropy"),), "none", "entropy")
    with pytest.raises(AttributeError):
        method.name = "other"  # type: ignore[misc]
    assert method.internal_exits
