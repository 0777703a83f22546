"""What is asked, refused, written and read again."""

from __future__ import annotations

import json

import pytest
from lab.tests.analysis.toys import same_rows, subject, toy_trace

from de3bert.errors import De3Error, UsageError
from de3lab.analysis import ANALYSES, Subject, analyse, write_result
from de3lab.analysis.analysis import Analysis, check_subjects, resolve
from de3lab.documents import AnalysisResult


def declared(**changes):
    fields = {
        **{name: "toy" for name in ("name", "title", "summary", "paper")},
        "measure": lambda subjects, settings: {},
        "tables": lambda numbers: [],
        "draw": lambda path, numbers: None,
        "settings": {"tau": [0.2], "seed": 0},
    }
    return Analysis(**{**fields, **changes})


def test_settings_replace_defaults():
    assert resolve(declared(), {"tau": [0.5]}) == {"tau": [0.5], "seed": 0}


def test_settings_it_does_not_have():
    with pytest.raises(UsageError, match=r"`toy` does not take the setting rows. .*: tau, seed\."):
        resolve(declared(), {"rows": 3})
    with pytest.raises(UsageError, match=r"It takes: none\."):
        resolve(declared(settings={}), {"tau": [1]})


KINDS = {name: Subject(name, f"{name}.trace") for name in "abc"}


@pytest.mark.parametrize(
    ("labels", "given", "words"),
    [
        ((1, 1), "ab", "takes 1 kind of models, got 2: a, b. Runs of one kind"),
        ((2, 2), "abc", "takes 2 kinds of models, got 3: a, b, c."),
        ((2, None), "a", "takes 2 or more kinds of models, got 1: a."),
        ((1, 2), "abc", "takes 1 to 2 kinds, got 3"),
        ((1, 1), "", "got 0: none."),
    ],
)
def test_how_many_kinds(labels, given, words):
    with pytest.raises(UsageError) as refused:
        check_subjects(declared(labels=labels), [KINDS[name] for name in given])
    assert words in str(refused.value)


def test_the_right_number_of_kinds_passes():
    check_subjects(declared(labels=(2, None)), list(KINDS.values()))
    check_subjects(declared(), [Subject("a", "1.trace"), Subject("a", "2.trace")])


def test_one_run_given_twice_is_no_second_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twice = [Subject("a", "x.trace"), Subject("a", "y.trace"), Subject("a", "./x.trace")]
    with pytest.raises(UsageError, match=r"\./x\.trace is given twice as a\."):
        check_subjects(declared(), twice)
    check_subjects(declared(labels=(2, 2)), [Subject("a", "x.trace"), Subject("b", "x.trace")])


def test_where_a_model_is_needed():
    with pytest.raises(UsageError, match=r"`toy` runs the model, and a\.trace is a trace"):
        check_subjects(declared(needs_model=True), [KINDS["a"]])


@pytest.fixture
def document(tmp_path):
    trace = toy_trace()
    both = [
        subject(tmp_path, "first", trace, label="whole"),
        subject(tmp_path, "second", same_rows(trace, 1), label="less", method="de3-no-pn"),
    ]
    given = {"speeds": [1.5, 2.0], "resamples": 20, "seed": 7}
    return analyse("components", both, given, "de3 analyze components ...")


def test_the_document_says_what_was_asked_of_what(document):
    assert document.format == "de3bert-analysis"
    assert (document.analysis, document.seed) == ("components", 7)
    assert document.paper == ANALYSES["components"].paper
    assert document.settings["metric"] == "accuracy"
    assert document.to_json()["subjects"][1] == {
        "label": "less",
        "name": "second.trace",
        "method": "de3-no-pn",
        "rows": 120,
        "model": "second",
        "data": {"sha256": "abc"},
    }
    assert {"machine", "versions", "date", "command"} <= set(document.to_json())


def test_five_files_and_the_same_tables_from_what_was_stored(document, tmp_path):
    place = tmp_path / "new" / "out"
    written = write_result(place, document)
    names = ["result.json", "table.md", "table.tex", "figure.png", "figure.svg"]
    assert written == [place / name for name in names]
    assert sorted(path.name for path in place.iterdir()) == sorted(names)
    again = AnalysisResult.read(place / "result.json")
    assert again.to_json() == json.loads(json.dumps(document.to_json()))
    before = {name: (place / name).read_text(encoding="utf-8") for name in names[1:3]}
    write_result(place, again)
    assert {name: (place / name).read_text(encoding="utf-8") for name in names[1:3]} == before
    assert before["table.md"].startswith(f"# {document.title}\n\n`de3 analyze components ...`, ")
    assert before["table.tex"].count(r"\begin{table}") == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("{", "is damaged"),
        ("[]", "expected a JSON object, got a list"),
        ('{"format": "de3bert-run"}', "is not the result of an analysis"),
        ('{"format": "de3bert-analysis", "version": 99}', r"has version 99.*Update de3bert"),
    ],
)
def test_results_that_cannot_be_read(tmp_path, text, words):
    path = tmp_path / "result.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(De3Error, match=words):
        AnalysisResult.read(path)


def test_an_unknown_analysis():
    with pytest.raises(UsageError, match=r'"indicater".* Did you mean "indicator"'):
        analyse("indicater", [], {}, "")
