"""Subjects: how they are named and read, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from lab.tests.analysis.toys import same_rows, stored, subject, toy_trace

from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.runtime.classifier import Classifier
from de3bert.tasks import TASKS
from de3lab.analysis.subject import Subject, data_hash, grouped, read_subjects

TABLE = Table(["good", "bad"], labels=["pos", "neg"], source="t.csv", sha256="abc")


@pytest.mark.parametrize(
    ("text", "label", "path"),
    [
        ("whole={}", "whole", "{}"),
        ("w/o PN={}", "w/o PN", "{}"),
        (" whole = {} ", "whole", "{}"),
        ("{}", "de3", "{}"),
    ],
)
def test_labels_and_paths(tmp_path, text, label, path):
    place = stored(tmp_path, "one", toy_trace())
    (found,) = read_subjects([text.format(place)], None)
    assert (found.label, found.path) == (label, path.format(place))


def test_a_path_with_an_equals_sign_is_a_path(tmp_path):
    place = stored(tmp_path, "alpha=0.1", toy_trace())
    (found,) = read_subjects([str(place)], None)
    assert (found.label, found.path) == ("de3", str(place))
    (found,) = read_subjects([f"small={place}"], None)
    assert (found.label, found.path) == ("small", str(place))


@pytest.mark.parametrize("text", ["", "  ", "=", "=x.trace", "name=", " = "])
def test_what_is_no_subject(text):
    with pytest.raises(UsageError, match="PATH or LABEL=PATH"):
        read_subjects([text], None)


def test_a_model_needs_rows():
    with pytest.raises(UsageError, match=r"runs/m is a model; .* --data FILE"):
        read_subjects(["m=runs/m"], None)
    with pytest.raises(UsageError, match=r"runs/m .*--data FILE"):
        _ = Subject("m", "runs/m").rows


def test_a_trace_is_no_model(tmp_path):
    with pytest.raises(UsageError, match="is a trace; this needs the model"):
        _ = subject(tmp_path, "one", toy_trace()).classifier


@pytest.fixture
def loaded(monkeypatch):
    """What is loaded in place of models, and how often."""
    config = SimpleNamespace(method="de3-v2", method_options={"lambda": 2, "dar": "alienation"})
    task = TASKS["text-classification"]
    model, times = SimpleNamespace(info=config, task=task), []

    def load(path, threads=None):
        times.append(path)
        return model

    monkeypatch.setattr("de3bert.runtime.load.load", load)
    return SimpleNamespace(model=model, times=times)


def test_a_model_without_a_label_is_loaded_once(loaded):
    (found,) = read_subjects(["runs/m"], TABLE)
    assert found.label == found.method == "de3-v2"
    assert found.classifier is loaded.model
    assert (found.own_lambda, found.options["dar"]) == (2.0, "alienation")
    assert loaded.times == ["runs/m"]


def test_models_with_labels_are_loaded_when_asked_for(loaded):
    found = read_subjects(["a=runs/m", "b=runs/n"], TABLE)
    assert loaded.times == []
    assert found[1].classifier is loaded.model
    assert loaded.times == ["runs/n"]


def test_a_tagger_is_refused(monkeypatch):
    words = Classifier.__new__(Classifier)
    words.task = TASKS["token-classification"]
    monkeypatch.setattr("de3bert.runtime.load.load", lambda path, threads=None: words)
    with pytest.raises(UsageError, match="is a tagger"):
        read_subjects(["runs/w"], TABLE)


def test_options_of_a_trace(tmp_path):
    plain = subject(tmp_path, "plain", toy_trace())
    assert (plain.own_lambda, dict(plain.options), plain.method) == (1.0, {}, "de3")
    told = subject(tmp_path, "told", toy_trace(), method_options={"lambda": 0.667})
    assert told.own_lambda == 0.667
    old = toy_trace()
    old.save(tmp_path / "old.trace")
    assert Subject("old", str(tmp_path / "old.trace")).method == "unknown"


def test_labels_are_needed(tmp_path):
    bare = subject(tmp_path, "bare", replace(toy_trace(), labels=None))
    with pytest.raises(UsageError, match=r"bare\.trace has rows without labels.*--label NAME"):
        _ = bare.labelled


def test_two_classes_are_needed(tmp_path):
    trace = replace(toy_trace(), labels=np.ones(120, dtype=np.int64))
    with pytest.raises(UsageError, match=r"All 120 rows .* one class \(class 1\)"):
        _ = subject(tmp_path, "one", trace).labelled


def test_distances_are_needed(tmp_path):
    plain = subject(tmp_path, "plain", replace(toy_trace(), distances=None), method="deebert")
    assert plain.labelled.rows == 120
    with pytest.raises(UsageError, match=r"plain\.trace \(deebert\) has no distances"):
        _ = plain.with_distances


def test_seeds_share_a_label(tmp_path):
    places = [stored(tmp_path, f"run{seed}", toy_trace()) for seed in range(3)]
    found = read_subjects([f"b={places[0]}", f"a={places[1]}", f"b={places[2]}"], None)
    kinds = grouped(found)
    assert list(kinds) == ["b", "a"]
    assert [each.path for each in kinds["b"]] == [str(places[0]), str(places[2])]


def others():
    trace = toy_trace()
    labels = trace.known_labels.copy()
    labels[5] = 1 - labels[5]
    return {
        "hash": (trace, "other"),
        "rows": (trace.take(slice(0, 100)), "abc"),
        "labels": (replace(trace, labels=labels), "abc"),
        "labels, hash unknown": (replace(trace, labels=labels), None),
    }


@pytest.mark.parametrize("name", others())
def test_traces_of_different_rows_do_not_compare(tmp_path, name):
    trace, sha256 = others()[name]
    first = stored(tmp_path, "first", toy_trace())
    other = stored(tmp_path, "other", trace, sha256=sha256)
    with pytest.raises(De3Error, match=r"first\.trace and .*other\.trace are about different data"):
        read_subjects([str(first), str(other)], None)


def test_traces_of_the_same_rows_do(tmp_path):
    trace = toy_trace()
    made = {
        "known": (trace, "abc"),
        "unknown": (same_rows(trace, 1), None),
        "without labels": (replace(trace, labels=None), "abc"),
    }
    places = [str(stored(tmp_path, name, one, sha256=sha)) for name, (one, sha) in made.items()]
    assert len(read_subjects(places, None)) == 3


def test_a_model_beside_a_trace_must_be_asked_about_its_rows(tmp_path, loaded):
    place = stored(tmp_path, "t", toy_trace(rows=2, seed=3))
    assert len(read_subjects([f"t={place}", "m=runs/m"], TABLE)) == 2
    for table in (replace(TABLE, sha256="xyz"), replace(TABLE, texts=["good"])):
        with pytest.raises(De3Error, match=r"t\.trace and runs/m are about different data"):
            read_subjects([f"t={place}", "m=runs/m"], table)
    assert loaded.times == []


@pytest.mark.parametrize("info", [{}, {"data": "toy"}, {"data": None}, {"data": {"rows": 1}}])
def test_a_trace_that_does_not_say_its_data(info):
    assert data_hash(replace(toy_trace(), info=info)) is None
