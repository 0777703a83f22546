"""Declarations name parts that exist; options are checked where they are given."""

from __future__ import annotations

import pytest

from de3bert.errors import UsageError
from de3bert.exits.family import Family
from de3bert.methods import METHODS, Method, Phase, Term
from de3bert.model.depth import DEPTHS
from de3bert.model.groups import GROUPS
from de3bert.model.heads import HEADS
from de3bert.model.pooling import POOLINGS
from de3bert.model.routers import ROUTERS
from de3bert.objective import LOSSES
from de3bert.objective.distance import DAR_FORMS
from de3bert.training.finish import FINISHES
from de3bert.training.hooks import HOOKS


@pytest.mark.parametrize("name", METHODS)
def test_every_declaration_names_parts_that_exist(name: str) -> None:
    method = METHODS[name]
    assert method.name == name
    assert method.summary
    assert method.citation
    assert method.phases
    for term in (term for phase in method.phases for term in phase.terms):
        assert term.loss in LOSSES
        if isinstance(term.weight, str):
            assert isinstance(method.options[term.weight], float)
    assert method.pooling is None or method.pooling in POOLINGS
    assert method.heads in HEADS
    assert method.router == "none" or method.router in ROUTERS
    assert method.depth in DEPTHS
    assert method.teacher is None or method.teacher in METHODS
    assert method.training is None or method.training in METHODS
    assert method.finish is None or method.finish in FINISHES
    for phase in method.phases:
        assert set(phase.trains) <= set(GROUPS)
        assert phase.hook is None or phase.hook in HOOKS
        for number in (phase.epochs, phase.learning_rate):
            assert isinstance(number, float) or isinstance(method.options[number], float)
    for family in method.families:
        signal = Family.parse(family).signal
        if signal is not None:
            assert signal.needs_distances <= (method.prototypes != "none")
            assert signal.needs_certainty <= (method.router != "none")
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
    phase = Phase((Term("cross_entropy"),))
    method = Method("m", "s", "c", "baseline", (phase,), ("entropy",))
    with pytest.raises(AttributeError):
        method.name = "other"  # type: ignore[misc]
    assert method.internal_exits
