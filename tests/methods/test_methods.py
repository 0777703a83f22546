"""Declarations name parts that exist; options are checked where they are given."""

from __future__ import annotations

import re

import pytest

from de3bert.errors import UsageError
from de3bert.exits.family import Family
from de3bert.exits.token_hash import HASHES
from de3bert.methods import METHODS, Method, Phase, Term
from de3bert.methods.options import OPTIONS, OneOf, Range
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


@pytest.mark.parametrize("name", METHODS)
def test_every_option_says_what_it_may_be(name: str) -> None:
    method = METHODS[name]
    for option, default in method.options.items():
        assert isinstance(OPTIONS[option], OneOf if isinstance(default, str) else Range)
    assert method.resolve(method.options) == dict(method.options)


def test_the_words_of_options_are_those_of_the_parts() -> None:
    assert set(OPTIONS["dar"].words) == set(DAR_FORMS)
    assert set(OPTIONS["hash"].words) == set(HASHES)


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("method", "option", "value", "words"),
    [
        ("de3", "gamma", 5.0, "gamma must be at most 1, got 5"),
        ("de3", "gamma", -0.1, "gamma must be a number at least 0, got -0.1"),
        ("de3", "lambda", -1.0, "lambda must be a number at least 0, got -1"),
        ("de3", "alpha", NAN, "alpha must be a number at least 0, got nan"),
        ("de3", "alpha", INFINITE, "alpha must be at most 1000, got inf"),
        ("de3", "alpha", -INFINITE, "alpha must be a number at least 0, got -inf"),
        ("de3", "dar", "centre", 'form of dar "centre". Did you mean "center"'),
        ("fastbert", "direction", "both", 'direction "both"'),
        ("fastbert", "head_size", 12.5, "head_size must be a whole number from 1 on, got 12.5"),
        ("leebert", "from", "earlier", 'from "earlier"'),
        ("leebert", "halves", "both", 'halves "both"'),
        ("leebert", "unroll", 0.5, "unroll must be a whole number from 0 on, got 0.5"),
        ("leebert", "weights_rate", 1e6, "weights_rate must be at most 1"),
        ("distilbert", "soft_words", "some", 'soft_words "some"'),
        ("distilbert", "word_epochs", NAN, "word_epochs must be a number at least 0, got nan"),
        ("distilbert", "word_rate", 0.0, "word_rate must be a number above 0, got 0"),
        ("cascade-truncated", "small", 1.5, "small must be a whole number from 1 on, got 1.5"),
        ("consistentee", "rollouts", 1e9, "rollouts must be at most 10000"),
        ("layers-k", "layers", INFINITE, "layers must be a whole number from 0 on, got inf"),
        ("tokee", "full_share", 0.9, "full_share must be at most 0.8, got 0.9"),
    ],
)
def test_values_out_of_range(method: str, option: str, value: float | str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        METHODS[method].resolve({option: value})


def test_a_method_from_elsewhere_has_options_of_its_own() -> None:
    phase = Phase((Term("cross_entropy"),))
    method = Method("m", "s", "c", "baseline", (phase,), ("entropy",), options={"own": 1.0})
    assert method.resolve({"own": 7.0}) == {"own": 7.0}
    with pytest.raises(UsageError, match="is a number"):
        method.resolve({"own": "seven"})


def test_a_method_is_data() -> None:
    phase = Phase((Term("cross_entropy"),))
    method = Method("m", "s", "c", "baseline", (phase,), ("entropy",))
    with pytest.raises(AttributeError):
        method.name = "other"  # type: ignore[misc]
    assert method.internal_exits
