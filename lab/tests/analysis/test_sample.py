"""One row, layer by layer, and the search for the row that shows the point."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lab.tests.analysis.saved import saved
from tests.exits.traces import make_trace, random_trace

from de3bert.data.read import read_table
from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import Policy, curve, replay
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.misled import contest, surest_mistake

# The fact sheet's trace: probabilities and the distances to the two likeliest classes.
GOLDEN = make_trace(
    np.log([[[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.9, 0.08, 0.02], [0.1, 0.8, 0.1]]]),
    [1],
    [[[0.6, 0.3, 1.0], [0.2, 0.8, 1.0], [0.1, 0.9, 1.0]]],
)


def numbers_of(subject, **settings):
    return analyse("sample", [subject], settings, "de3 analyze sample ...").numbers


def test_golden_numbers(tmp_path):
    found = numbers_of(saved(tmp_path, GOLDEN), row=1, lambdas=[1.0])["layers"]
    expected = {
        "entropy": [0.937231, 0.729847, 0.341452],
        "distance_ratio": [0.75, 0.125, 0.055556],
        "edr": [0.833227, 0.213444, 0.095563],
        "probability": [0.5, 0.7, 0.9],
    }
    for name, values in expected.items():
        assert [each[name] for each in found[:3]] == pytest.approx(values, abs=1e-6)
    assert [each["right"] for each in found] == [False, False, False, True]
    assert [each["prediction"] for each in found] == ["class 0"] * 3 + ["class 1"]
    last = found[-1]
    assert (last["layer"], last["distance_ratio"], last["edr"]) == (4, None, None)
    assert last["entropy"] > 0


def test_lambda_changes_edr_alone(tmp_path):
    subject = saved(tmp_path, GOLDEN, method_options={"lambda": 1.5})
    own, plain = numbers_of(subject, row=1), numbers_of(subject, row=1, lambdas=[0.0])
    assert (own["lambda"], plain["lambda"]) == (1.5, 0.0)
    assert own["layers"][1]["edr"] == pytest.approx(0.186984, abs=1e-6)
    for first, second in zip(own["layers"], plain["layers"], strict=True):
        assert first["entropy"] == second["entropy"]
        assert first["distance_ratio"] == second["distance_ratio"]
        assert second["edr"] in (None, pytest.approx(second["entropy"]))


def test_the_contest_is_what_replaying_says():
    trace = random_trace(80, 5, 3, seed=4)
    found = contest(trace, 2.0)
    curves = [curve(trace, "entropy"), curve(trace, "edr(lambda=2.0)")]
    assert len(found.speeds) == 50
    assert found.misled.any()
    for number, speed in enumerate(found.speeds):
        left = []
        for place, rule in enumerate(curves):
            # The slowest threshold of all that are at least this fast.
            enough = [t for t, s in zip(rule.thresholds, rule.layer_speedup, strict=True)
                      if s >= speed - 1e-9]  # fmt: skip
            name = ("entropy", "edr(lambda=2.0)")[place]
            assert found.thresholds[number, place] == enough[0]
            left.append(replay(trace, Policy.parse(f"{name} < {enough[0]}")))
        for row in range(trace.rows):
            early, late = (int(each.exit_layers[row]) for each in left)
            truth = int(trace.known_labels[row])
            wrong, right = left[0].labels[row] != truth, left[1].labels[row] == truth
            assert found.leaves[number, row].tolist() == [early, late]
            assert found.misled[number, row] == (early < late and wrong and right)


def test_the_row_misled_at_most_speeds_is_shown(tmp_path):
    trace = random_trace(80, 5, 2, seed=1)
    found = numbers_of(saved(tmp_path, trace), lambdas=[1.0])
    often = contest(trace, 1.0).misled.sum(0)
    assert often[found["row"] - 1] == often.max() == found["split"]["speeds"] > 0
    assert found["misled"] == int((often > 0).sum())
    assert (found["searched"], found["rows"]) == ("misled by entropy", 80)
    split, one = found["split"], trace.take(np.array([found["row"] - 1]))
    for name, key, right in (("entropy", "entropy", False), ("edr(lambda=1.0)", "edr", True)):
        answer = replay(one, Policy.parse(f"{name} < {split[f'{key}_tau']!r}"))
        assert int(answer.exit_layers[0]) == split[f"{key}_layer"]
        assert (answer.labels[0] == one.known_labels[0]) == right
    assert split["entropy_layer"] < split["edr_layer"]


def test_of_rows_misled_equally_often_the_surest_is_shown():
    found = contest(random_trace(60, 5, 2, seed=3), 1.0)
    even = replace(
        found,
        misled=np.array([[True, True, False], [False, False, False]]),
        doubt=np.array([[0.5, 0.2, 0.0], [0.0, 0.9, 0.0]]),
    )
    assert even.best() == 1
    assert replace(even, misled=np.zeros((2, 3), bool)).best() is None


def mended_trace():
    """Distances that say what entropy says: row 0 errs unsure, row 1 errs sure, row 2 to the end.

    Rows 3 and up are right from the start.
    """
    right, wrong = np.array([0.0, 4.0]), np.array([1.0, 0.0])
    logits = np.stack([np.tile(right, (3, 1)) for _ in range(8)])
    logits[0, 0], logits[1, 0], logits[2, :] = wrong, 3 * wrong, 5 * wrong
    distances = np.full((8, 2, 2), 0.5)
    return make_trace(logits, [1] * 7 + [0], distances)


def test_where_nothing_misleads_the_surest_mistake_is_shown(tmp_path):
    trace = mended_trace()
    assert surest_mistake(trace) == 1
    found = numbers_of(saved(tmp_path, trace), lambdas=[0.0])  # EDR is entropy
    assert (found["row"], found["searched"], found["misled"]) == (2, "wrong and sure", 0)
    assert found["split"] is None
    (table,) = ANALYSES["sample"].tables(found)
    assert "at no layer speed-up does entropy let a row go too early" in table.note
    ANALYSES["sample"].draw(tmp_path / "figure.png", found)


def test_rows_that_no_later_exit_corrects(tmp_path):
    trace = mended_trace().take(np.arange(2, 8))
    assert surest_mistake(trace) is None
    with pytest.raises(UsageError, match=r"none to show. Name a row with --row"):
        numbers_of(saved(tmp_path, trace))
    assert numbers_of(saved(tmp_path, trace), row=3)["layers"][0]["right"] is True


def test_what_is_refused(tmp_path):
    trace = random_trace(40, 4, 2, seed=2)
    whole = saved(tmp_path, trace)
    plain = saved(tmp_path, replace(trace, distances=None, certainty=None))
    blind = saved(tmp_path, replace(trace, labels=None))
    for subject, settings, words in (
        (whole, {"lambdas": [1.0, 2.0]}, "takes one --lambda, got 2"),
        (whole, {"row": 41}, "no row 41: .* has rows 1 to 40"),
        (whole, {"row": 0}, "no row 0"),
        (plain, {}, "no distances to prototypes"),
        (plain, {"row": 1}, "needs distances to class prototypes"),
        (blind, {}, "rows without labels"),
        (whole, {"tau": [0.1]}, "does not take the setting tau"),
    ):
        with pytest.raises(UsageError, match=words):
            numbers_of(subject, **settings)


def test_a_row_without_a_label(tmp_path):
    blind = replace(random_trace(5, 4, 2), labels=None)
    found = numbers_of(saved(tmp_path, blind), row=2)
    assert {each["right"] for each in found["layers"]} == {None}
    assert (found["truth"], found["split"], found["text"]) == (None, None, None)
    ANALYSES["sample"].draw(tmp_path / "blind.png", found)
    (table,) = ANALYSES["sample"].tables(found)
    assert [row[-1] for row in table.rows] == [None] * 4
    assert "class" not in table.note


def test_the_text_of_a_trace_comes_from_its_data(tmp_path):
    trace = random_trace(3, 4, 2, seed=1)
    table = Table(["one", "two", "three"], ["a", "b", "c"], source="x.csv", sha256="abc")
    subject = saved(tmp_path, trace, data={"sha256": "abc"})
    found = numbers_of(replace(subject, table=table), row=2)
    assert (found["text"], found["pair"]) == ("two", "b")
    (shown,) = ANALYSES["sample"].tables(found)
    assert 'Text: "two / b"' in shown.note
    other = replace(table, sha256="def")
    shorter = table.take([0, 1])
    for wrong in (other, shorter):
        with pytest.raises(UsageError, match=r"was not made from x.csv"):
            numbers_of(replace(subject, table=wrong), row=2)


def test_a_model_is_run_on_the_row_alone(trained_model, toy_data, monkeypatch):
    from de3bert.runtime.classifier import Classifier
    from de3lab.analysis import Subject

    table = read_table(toy_data.test)
    whole = Subject("de3", str(trained_model), table)
    asked = []
    real = Classifier.trace
    monkeypatch.setattr(
        Classifier, "trace", lambda self, texts, *a, **k: asked.append(len(texts))
        or real(self, texts, *a, **k),
    )  # fmt: skip
    found = numbers_of(whole, row=7)
    assert asked == [1]
    assert found["text"] == table.texts[6]
    expected = whole.classifier.explain(table.texts[6], policy="full").layers
    for mine, theirs in zip(found["layers"], expected, strict=True):
        assert mine["entropy"] == pytest.approx(theirs.entropy, abs=1e-5)
        assert mine["prediction"] == theirs.label
        assert mine["edr"] == (None if theirs.edr is None else pytest.approx(theirs.edr, abs=1e-5))


def test_tables_and_figure_come_from_stored_numbers(tmp_path):
    found = numbers_of(saved(tmp_path, random_trace(80, 5, 2, seed=1)))
    again = json.loads(json.dumps(found))
    (table,) = ANALYSES["sample"].tables(again)
    assert len(table.rows) == 5
    assert table.rows[-1][4:6] == (None, None)
    assert "It was searched for" in table.note
    for kind in ("png", "svg"):
        ANALYSES["sample"].draw(tmp_path / f"figure.{kind}", again)
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000
