"""A method has one colour, dash and marker, wherever it is drawn."""

from __future__ import annotations

from itertools import combinations

import pytest

from de3bert.methods import METHODS
from de3lab.documents import StudyResult
from de3lab.figures.compare import Series, draw_trade_offs
from de3lab.figures.looks import DASHES, LOOKS, MARKERS, look_of, looks_of

COMPARED = [name for name in METHODS if name in LOOKS]


def test_no_two_methods_look_alike():
    assert len({(look.colour, look.dash, look.marker) for look in LOOKS.values()}) == len(LOOKS)
    lines = [look for name, look in LOOKS.items() if name not in ("full", "oracle")]
    assert len({(look.colour, look.dash) for look in lines}) == len(lines)
    assert max(look.dash for look in LOOKS.values()) < len(DASHES)
    assert max(look.marker for look in LOOKS.values()) < len(MARKERS)


def test_all_methods_that_read_texts_have_one():
    words = {"sentee", "tokee", "de3-words"}
    assert {*METHODS} - words - {"layers-k"} <= {*LOOKS}


def test_a_look_does_not_depend_on_what_stands_beside_it():
    for first, second in combinations(COMPARED, 2):
        assert looks_of([first, second])[first] == looks_of([second, first])[first] == LOOKS[first]


@pytest.mark.parametrize(
    ("label", "method"),
    [
        ("EDR (λ = 1)", "de3"), ("entropy", "joint-entropy"), ("patience", "pabee"),
        ("w/o PN", "de3-no-pn"), ("de3 (3 runs)", "de3"), ("full+fitted", "de3-fitted"),
        ("layers-6", "fixed depth"),
    ],
)  # fmt: skip
def test_a_rule_looks_like_the_method_that_is_known_by_it(label, method):
    assert look_of(label) == LOOKS[method]


def test_two_of_one_method_and_unknown_names_can_be_told_apart():
    names = ["EDR (λ = 1)", "EDR (λ = 2)", "mine", "yours", "entropy"]
    found = looks_of(names)
    assert list(found) == names
    assert found["EDR (λ = 1)"].colour == found["EDR (λ = 2)"].colour
    assert len({(look.colour, look.dash) for look in found.values()}) == 5
    assert len({found[name].colour for name in ("mine", "yours", "entropy", "EDR (λ = 1)")}) == 4
    many = looks_of([f"method {number}" for number in range(30)])
    assert len({(look.colour, look.dash) for look in many.values()}) == 30


def test_at_most_the_labelled_have_a_name_and_bands(tmp_path):
    x = [1.0, 2.0, 3.0]
    found = {
        "de3": Series(x, [0.9, 0.8, 0.7], [0.01, 0.02, 0.01]),
        "pabee": Series(x, [0.8, 0.7, 0.6], [0.01, 0.02, 0.01]),
        "cosee": Series(x, [0.85, 0.75, 0.65]),
        "full": Series([1.0], [0.91]),
    }
    path = tmp_path / "a.svg"
    draw_trade_offs(path, found, labelled=["de3", "full"], metric="accuracy", title="t")
    drawn = path.read_text(encoding="utf-8")
    for words in ("de3", "full", "2 others", "band: ± sd over seeds"):
        assert drawn.count(f"<!-- {words} -->") == 1
    for words in ("pabee", "cosee"):
        assert f"<!-- {words} -->" not in drawn
    assert drawn.count("FillBetweenPolyCollection") == 1  # of the labelled one alone


def test_pages_draw_with_the_same_numbers():
    from lab.tests.documents import made

    from de3lab.study.page import page

    given = made.study_result(
        methods=[made.method("de3"), made.method("pabee")], tasks=[made.task("one")],
        exits={"one": {}}, curves={"one": {}}, points={"one": {}}, scores={"2": {"one": {}}},
        averages={"2": {"tasks": [], "methods": {}}}, ranks={"2": {"tasks": [], "methods": {}}},
        tests={"2": {}},
    )  # fmt: skip
    text = page(StudyResult.model_validate(given.to_json()))
    assert '"pabee": {"colour": 2, "dash": 0, "marker": 2}' in text
